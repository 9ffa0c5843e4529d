import { isTransientAbstention } from '../../core/ladder/abstentions.ts';
import type { LedgerEntry } from '../../core/ladder/ledger.ts';
import { learnedName } from '../../core/ladder/learned-tier.ts';
import type { LearnedTier } from '../../core/ladder/learned-tier.ts';
import { basisOf, planTier } from '../../core/ladder/policy.ts';
import type {
  WriteLedger,
  PlanRequest,
  PlanResult,
  SettleRequest,
  SettleResult,
  WantedVerdict,
  Withdraw,
} from '../../core/ladder/requests.ts';
import type { LedgerTotals } from '../../core/ladder/ledger.ts';
import { askOf, cheaperVerdicts } from './ask-of.ts';
import { calibrate, putCalibrations } from './calibrate.ts';
import { decideOnce } from './decide-once.ts';
import { decisionEntry, loadCandidates } from './candidates.ts';
import type { LadderCandidate, LadderDependencies } from './candidates.ts';
import type { Durable } from '../durable.ts';
import { settleEscalation } from './settle-escalation.ts';
import { appendLedger } from '../../store/ladder/ledger.ts';
import { archiveKey, asksKey } from '../../store/keys.ts';
import { plans, wishes } from '../../store/ladder/ladder-codecs.ts';
import type { StoredPlan } from '../../store/ladder/ladder-codecs.ts';
import { putAbstention, putHeardVerdict } from '../verification/verdict-cache.ts';

export type LadderActivities = Durable<ReturnType<typeof createLadder>>;

/** Computations of one plan: their digests pass through histories. */
const MOST_ASKS = 200;

export function createLadder(deps: LadderDependencies, { mostAsks = MOST_ASKS } = {}) {
  const { store } = deps;
  return {
    /**
     * Counts what came for the calibration, decides who is escalated to a tier, writes it into the ledger, and puts what no
     * budget is left for into the archive. Verdicts come at any time, so another attempt may see another world: the
     * first plan that is kept is the plan, and all the rest follows from it (ADR 0021).
     */
    async planClimb(request: PlanRequest, signal: AbortSignal): Promise<PlanResult> {
      const { run, verification, rung: tier } = request;
      const plan = await decideOnce(store, request, plans, signal, () =>
        decidePlan(deps, request, mostAsks, signal),
      );
      const { ledger = request.ledger } = plan;
      const { writer, sequence } = ledger;
      if (tier > 1) await putCalibrations(store, request, ledger, tier - 1, plan, signal);
      if (plan.deferred.length > 0)
        await store.putIfAbsent(archiveKey(run, writer, sequence), wishes, plan.deferred, { signal });
      const totals = await appendLedger(store, run, ledger, plan.entries, { signal });
      const { asks, calibrations, more } = plan;
      const kept =
        asks.length === 0
          ? null
          : await store.putIfAbsent(asksKey(run, writer, sequence), wishes, asks, { signal });
      return {
        calibrations,
        asks: kept && kept.ref,
        digests: asks.map(({ ask }) => ask.request.digest),
        verifier: verification.rungs[tier]!.verifier,
        costs: asks.map(({ ask }) => ask.cost),
        more,
        totals,
      };
    },

    settleClimb: (request: SettleRequest, signal: AbortSignal): Promise<SettleResult> =>
      settleEscalation(deps, request, signal),

    async keepLedger({ run, heard, ledger, entries }: WriteLedger, signal: AbortSignal): Promise<void> {
      const hear = async (entry: LedgerEntry): Promise<void> => {
        if (entry.kind !== 'verdict') return;
        if (entry.type !== undefined && isTransientAbstention(entry.type)) {
          await putAbstention(store, run, entry, entry.type, signal);
        } else if (heard) await putHeardVerdict(store, run, entry, signal);
      };
      await Promise.all(entries.map(hear));
      await appendLedger(store, run, ledger, entries, { signal });
    },

    /** Puts what was to be asked into the archive after all. */
    async withdraw(
      { run, stage, asks, from, to, ledger }: Withdraw,
      signal: AbortSignal,
    ): Promise<Record<string, LedgerTotals>> {
      const all = await store.read(asks, wishes, { signal });
      const back = all.slice(from, to);
      await store.putIfAbsent(archiveKey(run, ledger.writer, ledger.sequence), wishes, back, { signal });
      const entries = back.map(({ ask: { request } }): LedgerEntry => {
        const { verifier, version, digest } = request;
        return { kind: 'withdrawn', stage, verifier, version, digest };
      });
      return appendLedger(store, run, ledger, entries, { signal });
    },
  };
}

/** What the ladder's policy would do now. */
async function decidePlan(
  deps: LadderDependencies,
  request: PlanRequest,
  mostAsks: number,
  signal: AbortSignal,
): Promise<StoredPlan> {
  const { verification, rung: tier, steps, came } = request;
  const { reviewers } = verification.rungs[tier]!;
  const candidates = await loadCandidates(deps, request, { signal });
  // What the tier below has said since it was asked.
  const { calibrations, counted } =
    tier > 1
      ? await calibrate(deps.store, request, tier - 1, candidates, signal)
      : { calibrations: request.calibrations, counted: [] };
  const wanted = new Map<string, WantedVerdict>();
  for (const candidate of candidates) {
    const { views, environment, digests } = candidate;
    const view = views[tier];
    if (!view || wanted.has(digests[tier]!)) continue;
    const cheaper = cheaperVerdicts(candidate, verification, tier);
    const ask = askOf(view, environment.name, { run: request.run, reviewers, cheaper });
    wanted.set(digests[tier]!, { ask, value: 0, basis: null });
  }
  const cost = wanted.values().next().value?.ask.cost ?? { seconds: 0, usd: 0 };
  const plan = planTier(
    tier,
    candidates,
    { ...verification, calibrations },
    { ...request, cost, most: mostAsks, underWay: new Set(request.underWay) },
  );
  const asked = new Set(plan.asks.map(({ digest }) => digest));
  const more = plan.asks.length === mostAsks;
  const arrived = new Set(came.flat());
  const deferred = new Set<string>();
  const entries: LedgerEntry[] = [];
  candidates.forEach((candidate, i) => {
    const decision = plan.decisions[i];
    if (!decision) return;
    const digest = candidate.digests[tier]!;
    const wish = wanted.get(digest)!;
    if (wish.basis === null || decision.value > wish.value) {
      Object.assign(wish, { value: decision.value, basis: basisFor(candidate, verification.learned) });
    }
    // What the plan had no place for, or what an earlier plan of the step has decided, is another one's.
    if (decision.kind === 'defer' ? more : request.again && !asked.has(digest)) return;
    // Of an earlier step only what changed is new.
    const fresh =
      candidate.step === steps.at(-1) || candidate.digests.some((one) => one !== null && arrived.has(one));
    if (fresh || asked.has(digest))
      entries.push(decisionEntry(candidate, decision, { ...verification, calibrations }, digest));
    if (fresh && decision.kind === 'defer') deferred.add(digest);
  });
  return {
    calibrations,
    counted,
    asks: plan.asks.map(({ digest, value }) => ({ ...wanted.get(digest)!, value })),
    more,
    deferred: [...deferred].map((digest) => wanted.get(digest)!).toSorted((a, b) => b.value - a.value),
    entries,
  };
}

function basisFor(
  { scores, learned: said }: LadderCandidate,
  learned: LearnedTier | undefined,
): WantedVerdict['basis'] {
  const tier = basisOf(scores);
  if (tier < 0) return null;
  const byModel = tier === 0 && said && learned && { learned: learnedName(learned.stage) };
  return { rung: tier, score: scores[tier] as number, ...byModel };
}
