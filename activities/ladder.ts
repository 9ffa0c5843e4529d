import type { Episode, RolloutGroup } from '../core/episode.ts';
import { addPairs } from '../core/ladder/calibration.ts';
import type { Calibration, ScorePair } from '../core/ladder/calibration.ts';
import { addEntries } from '../core/ladder/ledger.ts';
import type { LedgerEntry, LedgerTotals } from '../core/ladder/ledger.ts';
import { basisOf, decide, planRung } from '../core/ladder/policy.ts';
import type { LadderDecision } from '../core/ladder/policy.ts';
import { LADDER } from '../core/ladder/requests.ts';
import type {
  Ask,
  CalibrateRequest,
  KeepLedger,
  LedgerPlace,
  PlanRequest,
  PlanResult,
  SettleRequest,
  SettleResult,
} from '../core/ladder/requests.ts';
import { armName, tierQueue } from '../core/names.ts';
import type { Outcome } from '../core/outcome.ts';
import type { BlobRef } from '../core/refs.ts';
import type { ArmTally, GroupResult } from '../core/requests.ts';
import type { RewardSpec, VerificationSpec } from '../core/spec.ts';
import { DEFAULT_TIER_LIMITS } from '../environments/contract.ts';
import { loadClimbers, scoreOf } from './climbers.ts';
import type { Climber, RungView } from './climbers.ts';
import type { Durable } from './durable.ts';
import type { Environments } from './environment-of.ts';
import { judge } from './judge.ts';
import { archiveKey, asksKey, ledgerKey } from './store/keys.ts';
import type { ObjectStore } from './store/object-store.ts';
import { saveTrajectories } from './store/trajectories.ts';
import { tally } from './tally.ts';

export interface LadderDependencies {
  store: ObjectStore;
  environments: Environments;
}

export type LadderActivities = Durable<ReturnType<typeof createLadder>>;

/** How long people are waited for where the verifier does not say. */
const PEOPLE_TAKE_SECONDS = 7 * 24 * 3600;

/** Computations of one plan: their digests pass through histories. */
const MOST_ASKS = 200;

export function createLadder(deps: LadderDependencies) {
  const { store } = deps;
  return {
    /** Decides who climbs to a rung, writes it into the ledger, and puts what no budget is left for into the archive. */
    async planClimb(request: PlanRequest, signal: AbortSignal): Promise<PlanResult> {
      const { run, verification, rung, ledger, steps } = request;
      const { verifier, reviewers } = verification.rungs[rung]!;
      const climbers = await loadClimbers(deps, verification, steps, signal);
      const views = new Map(
        climbers.flatMap(({ views: all, environment }) => {
          const view = all[rung];
          return view ? [[view.digest, { view, environment: environment.name }] as const] : [];
        }),
      );
      const first = views.values().next().value;
      const cost = first?.view.verifier.cost ?? { seconds: 0, usd: 0 };
      const plan = planRung(
        rung,
        climbers,
        { rungs: verification.rungs, calibrations: request.calibrations },
        { ...request, cost, most: MOST_ASKS, underWay: new Set(request.underWay) },
      );
      const asked = new Set(plan.asks.map(({ digest }) => digest));
      const entries: LedgerEntry[] = [];
      const deferred = new Map<string, { ask: Ask; value: number }>();
      climbers.forEach((climber, i) => {
        const decision = plan.decisions[i];
        if (!decision) return;
        const digest = climber.digests[rung]!;
        const fresh = climber.step === steps.at(-1);
        // Of an earlier step only what changed is new.
        if (fresh || asked.has(digest)) entries.push(decisionEntry(climber, decision, verifier, digest));
        if (fresh && decision.kind === 'defer') {
          const { view, environment } = views.get(digest)!;
          const value = Math.max(decision.value, deferred.get(digest)?.value ?? -Infinity);
          deferred.set(digest, { ask: askOf(view, environment, reviewers), value });
        }
      });
      const asks = plan.asks.map(({ digest }) => {
        const { view, environment } = views.get(digest)!;
        return askOf(view, environment, reviewers);
      });
      if (deferred.size > 0) {
        const kept = [...deferred.values()].toSorted((a, b) => b.value - a.value);
        await store.putJson(archiveKey(run, ledger.writer, ledger.sequence), kept, { signal });
      }
      const totals = await append(store, run, ledger, entries, signal);
      const key = asksKey(run, ledger.writer, ledger.sequence);
      return {
        asks: asks.length === 0 ? null : await store.putJson(key, asks, { signal }),
        digests: asks.map((ask) => ask.request.digest),
        verifier,
        costs: asks.map((ask) => ask.cost),
        more: asks.length === MOST_ASKS,
        totals,
      };
    },

    /** Adds the pairs of scores that these verdicts made with those of the rung below. */
    async calibrate(request: CalibrateRequest, signal: AbortSignal): Promise<Calibration> {
      const { rungs } = request.verification;
      const climbers = await loadClimbers(deps, request.verification, request.steps, signal);
      const came = new Set(request.digests);
      const pairs = new Map<string, ScorePair>();
      for (const { scores, digests, group, episode } of climbers) {
        const [cheap, dear] = [scores[request.rung - 1], scores[request.rung]];
        const digest = digests[request.rung];
        if (typeof cheap !== 'number' || typeof dear !== 'number' || !digest || !came.has(digest)) continue;
        // Several episodes with the same answer to the same task are one pair.
        pairs.set(`${digest} ${JSON.stringify(group.tasks[episode.task]!.ref)} ${cheap}`, {
          cheap,
          dear,
          cheapPassed: cheap >= rungs[request.rung - 1]!.passAtLeast,
          dearPassed: dear >= rungs[request.rung]!.passAtLeast,
        });
      }
      return addPairs(request.calibrations[request.rung - 1]!, [...pairs.values()]);
    },

    /**
     * Judges a step's episodes anew by the dearest verdicts there are, and earlier ones whose verdicts came late.
     * Those are kept as objects of their own, beside what the fast tier had said.
     */
    async settleClimb(request: SettleRequest, signal: AbortSignal): Promise<SettleResult> {
      const { run, verification, reward, ledger, steps } = request;
      const climbers = await loadClimbers(deps, verification, steps, signal);
      const present = steps.at(-1)!;
      const late = new Set(request.late);
      const groups: GroupResult[] = [];
      const offered: BlobRef[] = [];
      const arms = new Map<string, ArmTally>();
      const entries: LedgerEntry[] = [];
      for (const members of groupBy(climbers, ({ ref: { key } }) => key).values()) {
        const { step, group } = members[0]!;
        const fresh = step === present;
        const touched = members.filter(({ digests }) => digests.some((digest) => digest && late.has(digest)));
        if (!fresh && touched.length === 0) continue;
        const outcomes = new Map<Episode, { before: Outcome; decision: LadderDecision }>();
        for (const climber of members) {
          const { episode } = climber;
          const decision = decide(climber.scores, verification.rungs, request.calibrations, () => true);
          outcomes.set(episode, { before: episode.outcome!, decision });
          episode.outcome = await outcomeOf(climber, decision, verification, reward, signal);
          if (fresh && decision.kind !== 'escalate') {
            const { verifier } = verification.rungs[Math.max(0, decision.rung)]!;
            entries.push(decisionEntry(climber, decision, verifier, climber.digests[decision.rung] ?? ''));
          }
        }
        const changed = touched.filter(
          ({ episode }) => JSON.stringify(outcomes.get(episode)!.before) !== JSON.stringify(episode.outcome),
        );
        if (!fresh && changed.length === 0) continue;
        if (!fresh) {
          for (const climber of members) {
            if (changed.includes(climber))
              addMove(arms, climber, outcomes.get(climber.episode)!.before, reward);
            else climber.episode.learnt = true;
          }
          entries.push({
            kind: 'offered',
            stage: step.stage,
            step: present.step,
            fromStep: step.step,
            episodes: changed.length,
          });
        }
        const judged = {
          ...group,
          id: `${group.id}.${fresh ? 'judged' : `late-${present.stage}-${present.step}`}`,
        };
        const kept = await saveTrajectories(store, { run, ...step }, judged, { signal });
        if (fresh) groups.push({ trajectories: kept, ...tally(reward, judged), spans: [] });
        else offered.push(kept);
      }
      // Groups of nothing but infrastructure failures have nobody on the ladder.
      const seen = new Set(climbers.map(({ ref: { key } }) => key));
      for (const ref of present.groups) {
        if (!seen.has(ref.key)) groups.push(await asItWas(store, ref, reward, signal));
      }
      const totals = await append(store, run, ledger, entries, signal);
      return { groups, offered, arms: [...arms.values()], totals };
    },

    async keepLedger({ run, ledger, entries }: KeepLedger, signal: AbortSignal): Promise<void> {
      await append(store, run, ledger, entries, signal);
    },
  };
}

export function askOf({ verifier, subject, digest }: RungView, environment: string, reviewers: number): Ask {
  const { name, version, tier, cost, served, limits } = verifier;
  return {
    request: { format: 'gradus.verify/1', verifier: name, version, digest, subject },
    environment,
    cost,
    limits: {
      ...DEFAULT_TIER_LIMITS,
      ...(served.by === 'people' && { timeoutSeconds: PEOPLE_TAKE_SECONDS }),
      ...limits,
    },
    served:
      served.by === 'people'
        ? { by: 'people', reviewers }
        : { by: 'queue', queue: tierQueue(tier, served.by === 'pool' ? served.pool : undefined) },
  };
}

function decisionEntry(
  { id, step }: Climber,
  { kind, value, uncertainty, reason }: LadderDecision,
  verifier: string,
  digest: string,
): LedgerEntry {
  return {
    kind: 'decision',
    stage: step.stage,
    step: step.step,
    candidate: id,
    verifier,
    decision: kind,
    value,
    uncertainty,
    reason,
    digest,
  };
}

/** The outcome with the dearest verdict in place of the fast one; pending where the spec would rather wait. */
async function outcomeOf(
  climber: Climber,
  decision: LadderDecision,
  { rungs }: VerificationSpec,
  reward: RewardSpec,
  signal: AbortSignal,
): Promise<Outcome> {
  const { environment, group, episode, scores, views, candidate } = climber;
  if (decision.kind === 'escalate' && rungs[decision.rung]!.missing === 'pending') {
    return { kind: 'pending', tier: rungs[decision.rung]!.tier };
  }
  const basis = basisOf(scores);
  if (basis <= 0) return episode.outcome!;
  const view = views[basis]!;
  const { score, evidence } = scoreOf(view, candidate);
  const { ref } = group.tasks[episode.task]!;
  return judge(environment, ref, episode, reward, signal, {
    verifier: LADDER,
    version: `${view.verifier.name}@${view.verifier.version}`,
    score,
    passed: score !== null && score >= rungs[basis]!.passAtLeast,
    ...(evidence === undefined ? {} : { evidence }),
  });
}

/** By how much a late verdict moves what is known of an arm. */
function addMove(arms: Map<string, ArmTally>, climber: Climber, before: Outcome, reward: RewardSpec): void {
  const { ref } = climber.group.tasks[climber.episode.task]!;
  const arm = { environment: ref.environment, level: ref.level };
  const move = arms.get(armName(arm)) ?? { arm, successes: 0, trials: 0 };
  const one = (outcome: Outcome): { successes: number; trials: number } => {
    const only: RolloutGroup = { ...climber.group, episodes: [{ ...climber.episode, outcome }] };
    return tally(reward, only).arms[0] ?? { successes: 0, trials: 0 };
  };
  const [was, is] = [one(before), one(climber.episode.outcome!)];
  move.successes += is.successes - was.successes;
  move.trials += is.trials - was.trials;
  arms.set(armName(arm), move);
}

async function asItWas(
  store: ObjectStore,
  ref: BlobRef,
  reward: RewardSpec,
  signal: AbortSignal,
): Promise<GroupResult> {
  const group = (await store.getJson(ref, { signal })) as unknown as RolloutGroup;
  return { trajectories: ref, ...tally(reward, group), spans: [] };
}

function groupBy<T>(all: readonly T[], key: (one: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const one of all) groups.set(key(one), [...(groups.get(key(one)) ?? []), one]);
  return groups;
}

/** Writes a page of the ledger; an attempt before this one may have written it already, and then that one counts. */
async function append(
  store: ObjectStore,
  run: string,
  { writer, sequence }: LedgerPlace,
  entries: readonly LedgerEntry[],
  signal: AbortSignal,
): Promise<Record<string, LedgerTotals>> {
  if (entries.length === 0) return {};
  const ref = await store.putJson(ledgerKey(run, writer, sequence), entries, { signal });
  return addEntries({}, (await store.getJson(ref, { signal })) as unknown as LedgerEntry[]);
}
