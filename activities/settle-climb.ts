import type { Episode, RolloutGroup } from '../core/episode.ts';
import type { LedgerEntry } from '../core/ladder/ledger.ts';
import { basisOf, decide } from '../core/ladder/policy.ts';
import type { LadderDecision } from '../core/ladder/policy.ts';
import { LADDER } from '../core/ladder/requests.ts';
import type { SettleRequest, SettleResult, StepGroups } from '../core/ladder/requests.ts';
import { armName } from '../core/names.ts';
import type { Outcome } from '../core/outcome.ts';
import type { BlobRef } from '../core/refs.ts';
import type { ArmTally, GroupResult } from '../core/requests.ts';
import type { RewardSpec, VerificationSpec } from '../core/spec.ts';
import { calibrate } from './calibrate.ts';
import { decisionEntry, loadClimbers, scoreOf } from './climbers.ts';
import type { Climber, LadderDependencies } from './climbers.ts';
import { judge } from './judge.ts';
import { appendLedger } from './store/ledger.ts';
import type { ObjectStore } from './store/object-store.ts';
import { loadTrajectories, saveTrajectories } from './store/trajectories.ts';
import { tally } from './tally.ts';

/**
 * Judges a step's episodes anew by the dearest verdicts there are, and earlier ones whose verdicts came late.
 * Those are kept as objects of their own, beside what the fast tier had said.
 */
export async function settleClimb(
  deps: LadderDependencies,
  request: SettleRequest,
  signal: AbortSignal,
): Promise<SettleResult> {
  const { store } = deps;
  const { run, verification, reward, ledger, steps } = request;
  const climbers = await loadClimbers(deps, request, signal);
  const calibrations = await calibrate(store, request, verification.rungs.length - 1, climbers, signal);
  const present = steps.at(-1)!;
  const came = new Set(request.came.flat());
  const groups: GroupResult[] = [];
  const settled: Record<string, BlobRef> = {};
  const offered: BlobRef[] = [];
  const arms = new Map<string, ArmTally>();
  const entries: LedgerEntry[] = [];
  for (const members of groupBy(climbers, ({ ref: { key } }) => key).values()) {
    const { step, group, ref } = members[0]!;
    const fresh = step === present;
    const touched = new Set(
      members.filter(({ digests }) => digests.some((digest) => digest && came.has(digest))),
    );
    if (!fresh && touched.size === 0) continue;
    const before = fresh ? null : await outcomesOf(store, step, ref, signal);
    const changed: Climber[] = [];
    for (const climber of members) {
      const { episode, scores, digests } = climber;
      const decision = decide(scores, verification.rungs, calibrations, () => true);
      episode.outcome = await outcomeOf(climber, decision, verification, reward, signal);
      const was = before?.get(nameOf(episode));
      const isNew =
        fresh || (touched.has(climber) && JSON.stringify(was) !== JSON.stringify(episode.outcome));
      if (!isNew) continue;
      changed.push(climber);
      if (decision.kind === 'escalate') continue;
      const { verifier } = verification.rungs[Math.max(0, decision.rung)]!;
      entries.push(decisionEntry(climber, decision, verifier, digests[decision.rung] ?? ''));
    }
    if (!fresh && changed.length === 0) continue;
    if (before !== null) {
      for (const climber of members) {
        if (changed.includes(climber)) addMove(arms, climber, before.get(nameOf(climber.episode))!, reward);
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
    settled[ref.key] = kept;
    if (fresh) groups.push({ trajectories: kept, ...tally(reward, judged), spans: [] });
    else offered.push(kept);
  }
  // Groups of nothing but infrastructure failures have nobody on the ladder.
  const seen = new Set(climbers.map(({ ref: { key } }) => key));
  for (const ref of present.groups) {
    if (!seen.has(ref.key)) groups.push(await asItWas(store, ref, reward, signal));
  }
  const totals = await appendLedger(store, run, ledger, entries, { signal });
  return { calibrations, groups, settled, offered, arms: [...arms.values()], totals };
}

const nameOf = ({ task, sample }: Episode): string => `${task}/${sample}`;

/** What was last made known of the episodes of an earlier step's group. */
async function outcomesOf(
  store: ObjectStore,
  { groups, settled }: StepGroups,
  { key }: BlobRef,
  signal: AbortSignal,
): Promise<Map<string, Outcome>> {
  const at = groups.findIndex((ref) => ref.key === key);
  const { episodes } = await loadTrajectories(store, settled?.[at] ?? groups[at]!, { signal });
  return new Map(episodes.map((episode) => [nameOf(episode), episode.outcome!]));
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
