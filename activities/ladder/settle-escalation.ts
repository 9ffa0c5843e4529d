import { GradusError } from '../../core/errors.ts';
import { groupBy } from '../../core/group-by.ts';
import type { Episode, RolloutGroup } from '../../core/episode/episode.ts';
import type { LedgerEntry } from '../../core/ladder/ledger.ts';
import type { Calibration } from '../../core/ladder/calibration.ts';
import { ladderOf } from '../../core/ladder/learned-tier.ts';
import { decideCandidate } from '../../core/ladder/policy.ts';
import type { LadderDecision } from '../../core/ladder/policy.ts';
import { LADDER } from '../../core/ladder/requests.ts';
import type { SettleRequest, SettleResult, StepGroups } from '../../core/ladder/requests.ts';
import { standingOf } from '../../core/ladder/standing.ts';
import { armName } from '../../core/names.ts';
import { isRewarded, trainableReward } from '../../core/episode/outcome.ts';
import type { Outcome } from '../../core/episode/outcome.ts';
import type { BlobRef } from '../../core/refs.ts';
import type { GroupResult } from '../../core/requests/verification.ts';
import { withVerdict } from '../../core/episode/reward.ts';
import type { RewardSpec } from '../../core/schema/reward.ts';
import type { LateMove } from '../../core/training/task-draw.ts';
import { calibrate, putCalibrations } from './calibrate.ts';
import { decideOnce } from './decide-once.ts';
import { decisionEntry, loadCandidates } from './candidates.ts';
import type { LadderCandidate, LadderDependencies } from './candidates.ts';
import type { HostCaller } from '../../environments/host/hosted-environment.ts';
import { IncidentList } from '../incident-list.ts';
import { verify } from '../verification/verify-episodes.ts';
import { appendLedger } from '../../store/ladder/ledger.ts';
import { settlements } from '../../store/ladder/ladder-codecs.ts';
import type { GroupSettlement, Settlement } from '../../store/ladder/ladder-codecs.ts';
import type { ObjectStore } from '../../store/objects/object-store.ts';
import { putTrajectories, loadTrajectories } from '../../store/rollout/trajectories.ts';
import { tally, tallyOutcomes } from '../verification/tally.ts';

/**
 * Judges a step's episodes anew by the highest verdicts there are, and earlier ones whose verdicts came late.
 * Those are kept as objects of their own, beside what the fast tier had said. Another attempt may see other verdicts:
 * the first settlement that is kept is the one, and all the rest follows from it (ADR 0021).
 */
export async function settleEscalation(
  deps: LadderDependencies,
  request: SettleRequest,
  signal: AbortSignal,
): Promise<SettleResult> {
  const { store } = deps;
  const { run, verification, reward, steps } = request;
  const incidents = new IncidentList();
  const settlement = await decideOnce(store, request, settlements, signal, () =>
    decideSettlement(deps, request, incidents.asker(signal)),
  );
  const { ledger = request.ledger } = settlement;
  await putCalibrations(store, request, ledger, verification.rungs.length - 1, settlement, signal);
  const present = steps.at(-1)!;
  const groups: GroupResult[] = [];
  const settled: Record<string, BlobRef> = {};
  const offered: BlobRef[] = [];
  for (const one of settlement.groups) {
    const { stage, step, ref } = one.from ?? placeOf(steps, one.of);
    const group = await loadTrajectories(store, ref, { signal });
    const judged = judgedAnew(group, one, `late-${present.stage}-${present.step}`);
    const kept = await putTrajectories(store, { run, stage, step }, judged, { signal });
    settled[one.of] = kept.ref;
    if (one.offered) offered.push(kept.ref);
    if (!one.late)
      groups.push({ trajectories: kept.ref, ...(await tally(reward, kept.value, signal)), spans: [] });
  }
  // Groups of nothing but infrastructure failures have nobody on the ladder.
  for (const ref of present.groups) {
    if (!settled[ref.key]) groups.push(await asItWas(store, ref, reward, signal));
  }
  const [first] = groups;
  if (first) first.incidents = incidents.all;
  const totals = await appendLedger(store, run, ledger, settlement.entries, { signal });
  const { calibrations, moves } = settlement;
  return { calibrations, groups, settled, offered, moves, totals };
}

/** Of an older version, which has only named it. */
function placeOf(steps: readonly StepGroups[], key: string): NonNullable<GroupSettlement['from']> {
  for (const { stage, step, groups } of steps)
    for (const ref of groups) if (ref.key === key) return { stage, step, ref };
  throw new GradusError('store', 'other-step', `${key} was judged, and is of no step that is escalated now`);
}

/** What the verdicts that there are now come to. */
async function decideSettlement(
  deps: LadderDependencies,
  request: SettleRequest,
  asker: HostCaller,
): Promise<Settlement> {
  const { store } = deps;
  const { signal } = asker;
  const { verification, reward, steps } = request;
  const candidates = await loadCandidates(deps, request, asker);
  const counted = await calibrate(store, request, verification.rungs.length - 1, candidates, signal);
  const present = steps.at(-1)!;
  const came = new Set(request.came.flat());
  const groups: GroupSettlement[] = [];
  const moves = new Map<string, LateMove>();
  const entries: LedgerEntry[] = [];
  const rewardOf = (outcome: Outcome | undefined): number | null =>
    outcome === undefined ? null : trainableReward(outcome, reward.truncated);
  for (const members of groupBy(candidates, ({ ref: { key } }) => key).values()) {
    const { step, ref } = members[0]!;
    const fresh = step === present;
    const touched = new Set(
      members.filter(({ digests }) => digests.some((digest) => digest && came.has(digest))),
    );
    if (!fresh && touched.size === 0) continue;
    const before = fresh ? null : await outcomesOf(store, step, ref, signal);
    const outcomes: Record<string, Outcome> = {};
    const decisions = new Map<LadderCandidate, LadderDecision>();
    for (const candidate of members) {
      const decision = decideCandidate(candidate, { ...verification, ...counted }, () => true);
      decisions.set(candidate, decision);
      outcomes[nameOf(candidate.episode)] = await outcomeOf(
        candidate,
        decision,
        request,
        counted.calibrations,
        asker,
      );
    }
    // Where verdicts only confirm, a line that has moved since is no reason to learn anew.
    const isWorthAnother = ({ episode }: LadderCandidate): boolean =>
      rewardOf(before?.get(nameOf(episode))) !== rewardOf(outcomes[nameOf(episode)]);
    const moved = new Set(before && [...touched].filter(isWorthAnother).map(({ episode }) => episode.task));
    let superseded = 0;
    for (const candidate of members) {
      const { episode, digests } = candidate;
      const name = nameOf(episode);
      const was = before?.get(name);
      if (was !== undefined) {
        const isSame = !touched.has(candidate) || JSON.stringify(was) === JSON.stringify(outcomes[name]);
        if (isSame && !moved.has(episode.task)) outcomes[name] = was;
        if (isSame) continue;
        superseded++;
        addMove(moves, candidate, was, outcomes[name]!, reward);
      }
      const decision = decisions.get(candidate)!;
      if (decision.kind === 'escalate') continue;
      const ladder = { ...verification, ...counted };
      entries.push(decisionEntry(candidate, decision, ladder, digests[decision.tier] ?? ''));
    }
    if (!fresh && superseded === 0) continue;
    const offered = moved.size > 0;
    if (offered) {
      entries.push({
        kind: 'offered',
        stage: step.stage,
        step: present.step,
        fromStep: step.step,
        episodes: superseded,
      });
    }
    const learntAs = Object.fromEntries(before ?? []);
    const from = { stage: step.stage, step: step.step, ref };
    groups.push({ of: ref.key, from, late: !fresh, offered, outcomes, learntAs });
  }
  return { ...counted, groups, moves: [...moves.values()], entries };
}

/** The group with the outcomes of a settlement, under a name of its own. */
function judgedAnew(
  group: RolloutGroup,
  { late, outcomes, learntAs }: GroupSettlement,
  lateName: string,
): RolloutGroup {
  return {
    ...group,
    id: `${group.id}.${late ? lateName : 'judged'}`,
    episodes: group.episodes.map((episode) => {
      const name = nameOf(episode);
      const outcome = outcomes[name] ?? episode.outcome;
      const was = learntAs[name];
      return { ...episode, ...(outcome && { outcome }), ...(was && { learntAs: was }) };
    }),
  };
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

/** The outcome by all that the tiers have said; pending where the spec would rather wait for one. */
async function outcomeOf(
  candidate: LadderCandidate,
  decision: LadderDecision,
  { verification, reward }: SettleRequest,
  calibrations: readonly Calibration[],
  asker: HostCaller,
): Promise<Outcome> {
  const { rungs: tiers } = verification;
  const { environment, task, episode, scores, views } = candidate;
  const fast = episode.outcome!;
  if (decision.kind === 'escalate' && tiers[decision.tier]!.missing === 'pending') {
    return { kind: 'pending', tier: tiers[decision.tier]!.tier };
  }
  const standing = standingOf(scores, ladderOf(candidate.learned, { ...verification, calibrations }));
  if (standing === null) return fast;
  const silence = (tier: number): string =>
    `${tiers[tier]!.verifier}: ${views[tier]?.meaning?.evidence ?? 'it gave no reason'}`;
  if (standing.kind === 'abstained') {
    const reason = silence(standing.tier);
    return { kind: 'abstained', reason, ...(standing.ofSubject && { ofSubject: true }) };
  }
  const { worth, passed, silent } = standing;
  const because = silent !== undefined && { evidence: silence(silent) };
  const view = views[standing.tier];
  if (!view) {
    // The lowest tier has spoken where the episodes were verified.
    if (!isRewarded(fast)) return fast;
    const said = fast.components.find(({ verifier }) => verifier === LADDER)!;
    if (!said.model && said.score === worth && said.passed === passed) return fast;
    return withVerdict(reward, fast, { ...said, worth, passed, ...because });
  }
  const { score, evidence } = view.meaning!;
  const model = isRewarded(fast) && fast.components.find(({ verifier }) => verifier === LADDER)!.model;
  const verdict = {
    verifier: LADDER,
    version: `${view.verifier.name}@${view.verifier.version}`,
    score,
    ...(worth !== score && { worth }),
    passed,
    ...(evidence === undefined ? {} : { evidence }),
    ...because,
    ...(model && { overruled: model }),
  };
  if (isRewarded(fast)) return withVerdict(reward, fast, verdict);
  // The lowest tier abstained, and so nothing was composed.
  const ruled = fast.kind === 'abstained' ? fast.ruled : undefined;
  return verify(environment, { ref: task, episode, escalated: verdict, ruled }, reward, asker);
}

/** By how much a late verdict changes what its step had counted of an arm. */
function addMove(
  moves: Map<string, LateMove>,
  candidate: LadderCandidate,
  before: Outcome,
  after: Outcome,
  reward: RewardSpec,
): void {
  const { ref } = candidate.group.tasks[candidate.episode.task]!;
  const { stage, step } = candidate.step;
  const arm = { environment: ref.environment, level: ref.level };
  const name = `${stage}/${step}/${armName(arm)}`;
  const move = moves.get(name) ?? { arm, successes: 0, trials: 0, stage, step };
  const one = (outcome: Outcome): { successes: number; trials: number } => {
    const only: RolloutGroup = { ...candidate.group, episodes: [{ ...candidate.episode, outcome }] };
    return tallyOutcomes(reward, only).arms[0] ?? { successes: 0, trials: 0 };
  };
  const [was, is] = [one(before), one(after)];
  move.successes += is.successes - was.successes;
  move.trials += is.trials - was.trials;
  moves.set(name, move);
}

async function asItWas(
  store: ObjectStore,
  ref: BlobRef,
  reward: RewardSpec,
  signal: AbortSignal,
): Promise<GroupResult> {
  const group = await loadTrajectories(store, ref, { signal });
  return { trajectories: ref, ...(await tally(reward, group, signal)), spans: [] };
}
