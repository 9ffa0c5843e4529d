import { isPassing } from '../core/ladder/abstentions.ts';
import type { LedgerEntry } from '../core/ladder/ledger.ts';
import { basisOf, planRung } from '../core/ladder/policy.ts';
import type {
  KeepLedger,
  PlanRequest,
  PlanResult,
  SettleRequest,
  SettleResult,
  Wish,
  Withdraw,
} from '../core/ladder/requests.ts';
import type { LedgerTotals } from '../core/ladder/ledger.ts';
import { askOf } from './ask-of.ts';
import { calibrate } from './calibrate.ts';
import { decisionEntry, loadClimbers } from './climbers.ts';
import type { Climber, LadderDependencies } from './climbers.ts';
import type { Durable } from './durable.ts';
import { settleClimb } from './settle-climb.ts';
import { appendLedger } from './store/ledger.ts';
import { archiveKey, asksKey } from './store/keys.ts';
import { keepAbstention } from './verdict-cache.ts';

export type LadderActivities = Durable<ReturnType<typeof createLadder>>;

/** Computations of one plan: their digests pass through histories. */
const MOST_ASKS = 200;

export function createLadder(deps: LadderDependencies, { mostAsks = MOST_ASKS } = {}) {
  const { store } = deps;
  return {
    /**
     * Counts what came for the calibration, decides who climbs to a rung, writes it into the ledger, and puts what no
     * budget is left for into the archive.
     */
    async planClimb(request: PlanRequest, signal: AbortSignal): Promise<PlanResult> {
      const { run, verification, rung, ledger, steps, came } = request;
      const { verifier, reviewers } = verification.rungs[rung]!;
      const climbers = await loadClimbers(deps, request, signal);
      // What the rung below has said since it was asked.
      const calibrations =
        rung > 1 ? await calibrate(store, request, rung - 1, climbers, signal) : request.calibrations;
      const wishes = new Map<string, Wish>();
      for (const { views, environment, digests } of climbers) {
        const view = views[rung];
        if (!view || wishes.has(digests[rung]!)) continue;
        wishes.set(digests[rung]!, { ask: askOf(view, environment.name, reviewers), value: 0, basis: null });
      }
      const cost = wishes.values().next().value?.ask.cost ?? { seconds: 0, usd: 0 };
      const plan = planRung(
        rung,
        climbers,
        { rungs: verification.rungs, calibrations },
        { ...request, cost, most: mostAsks, underWay: new Set(request.underWay) },
      );
      const asked = new Set(plan.asks.map(({ digest }) => digest));
      const more = plan.asks.length === mostAsks;
      const arrived = new Set(came.flat());
      const deferred = new Set<string>();
      const entries: LedgerEntry[] = [];
      climbers.forEach((climber, i) => {
        const decision = plan.decisions[i];
        if (!decision) return;
        const digest = climber.digests[rung]!;
        const wish = wishes.get(digest)!;
        if (wish.basis === null || decision.value > wish.value) {
          Object.assign(wish, { value: decision.value, basis: basisFor(climber) });
        }
        // What the plan had no place for, or what an earlier plan of the step has decided, is another one's.
        if (decision.kind === 'defer' ? more : request.again && !asked.has(digest)) return;
        // Of an earlier step only what changed is new.
        const fresh =
          climber.step === steps.at(-1) || climber.digests.some((one) => one !== null && arrived.has(one));
        if (fresh || asked.has(digest)) entries.push(decisionEntry(climber, decision, verifier, digest));
        if (fresh && decision.kind === 'defer') deferred.add(digest);
      });
      if (deferred.size > 0) {
        const kept = [...deferred].map((digest) => wishes.get(digest)!);
        await store.putJson(
          archiveKey(run, ledger.writer, ledger.sequence),
          kept.toSorted((a, b) => b.value - a.value),
          { signal },
        );
      }
      const totals = await appendLedger(store, run, ledger, entries, { signal });
      const asks = plan.asks.map(({ digest, value }): Wish => ({ ...wishes.get(digest)!, value }));
      const key = asksKey(run, ledger.writer, ledger.sequence);
      return {
        calibrations,
        asks: asks.length === 0 ? null : await store.putJson(key, asks, { signal }),
        digests: asks.map(({ ask }) => ask.request.digest),
        verifier,
        costs: asks.map(({ ask }) => ask.cost),
        more,
        totals,
      };
    },

    settleClimb: (request: SettleRequest, signal: AbortSignal): Promise<SettleResult> =>
      settleClimb(deps, request, signal),

    async keepLedger({ run, ledger, entries }: KeepLedger, signal: AbortSignal): Promise<void> {
      for (const entry of entries) {
        if (entry.kind !== 'verdict' || entry.type === undefined || !isPassing(entry.type)) continue;
        await keepAbstention(store, run, entry, entry.type, signal);
      }
      await appendLedger(store, run, ledger, entries, { signal });
    },

    /** Puts what was to be asked into the archive after all. */
    async withdraw(
      { run, stage, asks, from, to, ledger }: Withdraw,
      signal: AbortSignal,
    ): Promise<Record<string, LedgerTotals>> {
      const all = (await store.getJson(asks, { signal })) as unknown as Wish[];
      const back = all.slice(from, to);
      await store.putJson(archiveKey(run, ledger.writer, ledger.sequence), back, { signal });
      const entries = back.map(({ ask: { request } }): LedgerEntry => {
        const { verifier, version, digest } = request;
        return { kind: 'withdrawn', stage, verifier, version, digest };
      });
      return appendLedger(store, run, ledger, entries, { signal });
    },
  };
}

function basisFor({ scores }: Climber): Wish['basis'] {
  const rung = basisOf(scores);
  return rung < 0 ? null : { rung, score: scores[rung]! };
}
