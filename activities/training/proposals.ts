import type { Episode, RolloutGroup } from '../../core/episode/episode.ts';
import { isRewarded, LEARNABILITY } from '../../core/episode/outcome.ts';
import type { Outcome } from '../../core/episode/outcome.ts';
import { succeeded } from '../../core/episode/reward.ts';
import { GradusError } from '../../core/errors.ts';
import { armName } from '../../core/names.ts';
import type {
  KeepProposalsRequest,
  KeptProposals,
  RewardedProposals,
  RewardProposalsRequest,
} from '../../core/requests/self-play.ts';
import type { GroupResult } from '../../core/requests/verification.ts';
import type { ProposerArm } from '../../core/schema/stages/self-play.ts';
import type { RewardSpec } from '../../core/schema/reward.ts';
import { agreedOn, labelFacts, labelled, labelsOf } from '../../core/training/labels.ts';
import type { TaskLabel } from '../../core/training/labels.ts';
import { scoreOf } from '../../core/training/league.ts';
import { trainedRoles } from '../../core/training/roles.ts';
import { rewardProposals, sortOut } from '../../core/training/proposals.ts';
import type {
  CheckedProposal,
  MadePlace,
  Solved,
  StepProposal,
  StepProposals,
} from '../../core/training/proposals.ts';
import type { RoleRewards } from '../../core/training/step-facts.ts';
import { environmentOf } from '../../environments/host/environment-of.ts';
import type { Environments } from '../../environments/host/environment-of.ts';
import type { HostCaller } from '../../environments/host/hosted-environment.ts';
import type { ObjectStore } from '../../store/objects/object-store.ts';
import { loadTrajectories, putTrajectories } from '../../store/rollout/trajectories.ts';
import {
  putProposals,
  putTaskSource,
  readProposals,
  readTaskSource,
} from '../../store/training/task-source.ts';
import { IncidentList } from '../incident-list.ts';
import { tally } from '../verification/tally.ts';
import type { CurriculumDependencies } from './dependencies.ts';

/**
 * Has the environment check what a step proposed, and keeps the new tasks with those of earlier steps, as a source under its
 * own digest. What is kept under the step counts, whoever was first: another attempt has the same.
 */
export async function keepProposals(
  { store, environments }: CurriculumDependencies,
  { groups: refs, arms, mostTasks, ...request }: KeepProposalsRequest,
  signal: AbortSignal,
): Promise<KeptProposals> {
  const start = Date.now();
  const incidents = new IncidentList();
  const [groups, before] = await Promise.all([
    Promise.all(refs.map((ref) => loadTrajectories(store, ref, { signal }))),
    request.source === null ? { arms: {} } : readTaskSource(store, request.source, { signal }),
  ]);
  const asker = incidents.asker(signal);
  const checked = await Promise.all(groups.map((group) => checkedOf(environments, arms, group, asker)));
  const { grown, ...sorted } = sortOut(before, checked, { step: request.step, mostTasks });
  const source =
    sorted.made.length === 0 ? request.source : await putTaskSource(store, request.run, grown, { signal });
  const kept = await putProposals(store, request, { source, ...sorted }, { signal });
  const { counts, made } = kept.value;
  return {
    source: kept.value.source,
    counts,
    made,
    proposals: kept.ref,
    spans: [{ part: 'verification', start, end: Date.now() }],
    incidents: incidents.all,
  };
}

/** What the environment says of each episode of a group; one that gave no answer is malformed. */
async function checkedOf(
  environments: Environments,
  arms: readonly ProposerArm[],
  { tasks, episodes }: RolloutGroup,
  asker: HostCaller,
): Promise<CheckedProposal[]> {
  const checked = episodes.map(({ status }): CheckedProposal =>
    status.kind === 'failed' ? null : { kind: 'malformed', reason: `${status.kind}, without an answer` },
  );
  const answered = [...episodes.entries()].filter(([, { status }]) => status.kind === 'answered');
  const refOf = ({ task }: Episode) => tasks[task]!.ref;
  for (const name of new Set(answered.map(([, episode]) => refOf(episode).environment))) {
    const own = answered.filter(([, episode]) => refOf(episode).environment === name);
    const said = await environmentOf(environments, name).proposed(
      own.map(([, episode]) => ({ ref: refOf(episode), episode })),
      asker,
    );
    own.forEach(([at, episode], i) => {
      const one = said[i]!;
      const { level: asked } = refOf(episode);
      const { level } = arms.find(({ environment, asks }) => environment === name && asks === asked)!;
      // What went wrong there was told to the asker.
      if (one instanceof GradusError) checked[at] = null;
      else checked[at] = one.kind === 'accepted' ? { ...one, arm: { environment: name, level } } : one;
    });
  }
  return checked;
}

/** Rewards what a step proposed by how its solver fared: each group once more, as judged now. */
export async function rewardStepProposals(
  { store }: { store: ObjectStore },
  { reward, by, ...request }: RewardProposalsRequest,
  signal: AbortSignal,
): Promise<RewardedProposals> {
  const start = Date.now();
  const load = (refs: RewardProposalsRequest['groups']): Promise<RolloutGroup[]> =>
    Promise.all(refs.map((ref) => loadTrajectories(store, ref, { signal })));
  const [groups, solver, proposals] = await Promise.all([
    load(request.groups),
    load(request.solved),
    readProposals(store, request.proposals, { signal }),
  ]);
  const labels =
    by.labels === 'majority' ? solver.map((group) => ({ group, labels: labelsOf(group, by.filter) })) : null;
  const solved = solvedOf(proposals, solver, reward);
  const voted = labels && votedOf(proposals, labels);
  const rewards = rewardProposals(proposals.episodes, voted ?? solved, by);
  const score = scoreOf(by, proposals.episodes.flat(), voted ?? solved);
  const judged: GroupResult[] = [];
  for (const [g, group] of groups.entries()) {
    const episodes = group.episodes.map((episode, e) => ({
      ...episode,
      outcome: rewardedOutcome(episode, proposals.episodes[g]![e]!, rewards[g]![e]!),
    }));
    const kept = await putTrajectories(
      store,
      request,
      { ...group, id: `${group.id}.judged`, episodes },
      { signal },
    );
    judged.push({ trajectories: kept.ref, ...(await tally(reward, kept.value, signal)), spans: [] });
  }
  const learns = labels !== null && trainedRoles(by).solver;
  const relabelled: GroupResult[] = [];
  for (const { group, labels: said } of learns ? labels : []) {
    const kept = await putTrajectories(store, request, labelled(reward, group, said), { signal });
    relabelled.push({ trajectories: kept.ref, ...(await tally(reward, kept.value, signal)), spans: [] });
  }
  const solverCounts = learns
    ? relabelled
    : await Promise.all(solver.map((group) => tally(reward, group, signal)));
  const all = proposals.episodes.flat();
  const count = (is: (one: StepProposal) => boolean): number => all.filter(is).length;
  const sum = (of: (one: Solved) => number): number => solved.reduce((total, one) => total + of(one), 0);
  return {
    groups: judged,
    ...(learns && { solved: relabelled }),
    facts: {
      proposer: rewardsOf(judged),
      solver: rewardsOf(solverCounts),
      proposals: all.length,
      made: count(({ kind }) => kind === 'made'),
      repeated: count((one) => one.kind === 'made' && !one.first),
      kinds: new Set(all.flatMap((one) => (one.kind === 'made' ? [one.like] : []))).size,
      known: count(({ kind }) => kind === 'known'),
      invalid: count(({ kind }) => kind === 'invalid'),
      malformed: count(({ kind }) => kind === 'malformed'),
      setAside: count(({ kind }) => kind === 'set-aside'),
      successes: sum(({ successes }) => successes),
      trials: sum(({ trials }) => trials),
      kept: Object.values(proposals.counts).reduce((total, one) => total + one, 0),
      source: proposals.source?.sha256 ?? null,
      ...(score && { score }),
      ...(labels && { labels: labelFacts(reward, labels) }),
    },
    spans: [{ part: 'verification', start, end: Date.now() }],
  };
}

const nameOf = (place: MadePlace): string => `${armName(place)}#${place.index}`;

/** How the solver's samples voted on each task that the step has made. */
function votedOf(
  { made, source }: StepProposals,
  solver: readonly { group: RolloutGroup; labels: readonly TaskLabel[] }[],
): Solved[] {
  const found = new Map<string, Solved>();
  for (const { group, labels } of solver)
    for (const [task, { ref }] of group.tasks.entries())
      if (ref.source?.sha256 === source?.sha256) found.set(nameOf(ref), agreedOn(labels[task]!));
  // A group that failed as a whole has not voted.
  return made.map((place) => found.get(nameOf(place)) ?? { successes: 0, trials: 0 });
}

/** How the solver's samples fared with each task that the step has made. */
function solvedOf(
  { made, source }: StepProposals,
  solver: readonly RolloutGroup[],
  reward: RewardSpec,
): Solved[] {
  const found = new Map(made.map((place): [string, Solved] => [nameOf(place), { successes: 0, trials: 0 }]));
  for (const { tasks, episodes } of solver)
    for (const { task, outcome } of episodes) {
      const { ref } = tasks[task]!;
      const fared = ref.source?.sha256 === source?.sha256 ? found.get(nameOf(ref)) : undefined;
      const success = outcome && isRewarded(outcome) ? succeeded(reward.components, outcome) : null;
      if (!fared || success === null) continue;
      fared.trials++;
      if (success) fared.successes++;
    }
  return made.map((place) => found.get(nameOf(place))!);
}

/** Whoever reads the episode is told what became of the proposal, and why. */
function rewardedOutcome({ outcome }: Episode, became: StepProposal, reward: number | null): Outcome {
  if (outcome?.kind === 'failed') return outcome;
  const evidence = became.kind + ('reason' in became ? `: ${became.reason}` : '');
  if (reward === null) return { kind: 'abstained', reason: evidence };
  const said = outcome && isRewarded(outcome) ? outcome.components : [];
  const own = {
    verifier: LEARNABILITY,
    version: '1',
    score: Math.min(1, Math.max(0, reward)),
    contribution: reward,
    passed: became.kind === 'made',
    evidence,
  };
  const components = [...said.map((one) => ({ ...one, contribution: 0 })), own];
  return outcome?.kind === 'truncated'
    ? { ...outcome, reward, components }
    : { kind: 'scored', reward, components };
}

const rewardsOf = (groups: readonly RoleRewards[]): RoleRewards => ({
  rewardSum: groups.reduce((total, { rewardSum }) => total + rewardSum, 0),
  rewardCount: groups.reduce((total, { rewardCount }) => total + rewardCount, 0),
});
