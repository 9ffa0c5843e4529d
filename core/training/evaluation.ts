import { addIncidents } from '../episode/incidents.ts';
import type { Incident } from '../episode/incidents.ts';
import { noOutcomes } from '../episode/outcome.ts';
import type { OutcomeKind } from '../episode/outcome.ts';
import type { TrainingPorts } from '../ports.ts';
import type { TaskRef } from '../refs.ts';
import { addSpans } from '../time/spans.ts';
import type { EvaluationRequest, EvaluationResult } from '../requests/evaluation.ts';
import type { GroupRequest } from '../requests/rollout.ts';
import type { ArmTally, GroupResult } from '../requests/verification.ts';
import { armName } from '../names.ts';
import type { Proportion } from '../statistics/intervals.ts';
import { addBehaviour, noBehaviour } from './behaviour.ts';
import { addByArm } from './how-solved.ts';
import { failedTasksOf } from './tasks-again.ts';

/** Episodes of one evaluation group: enough to fill a batch, few enough to lose little. */
const EPISODES_PER_GROUP = 128;

/** The evaluation's tasks: the first ones of the split, in equal parts over the arms (the first arms get the rest). */
export function evaluationTasks(request: Pick<EvaluationRequest, 'arms' | 'tasks' | 'split'>): TaskRef[] {
  const tasks: TaskRef[] = [];
  for (let i = 0; i < request.tasks; i++) {
    const arm = request.arms[i % request.arms.length]!;
    tasks.push({
      environment: arm.environment,
      split: request.split,
      level: arm.level,
      index: Math.floor(i / request.arms.length),
    });
  }
  return tasks;
}

/**
 * Requests of at most `size` tasks each, in order. The first `retries` of all tasks were drawn before. `after` counts the
 * groups and tasks that the step has already.
 */
export function shareOut(
  tasks: readonly TaskRef[],
  size: number,
  common: Omit<GroupRequest, 'group' | 'firstTask' | 'tasks' | 'retries'>,
  retries = 0,
  after = { group: 0, firstTask: 0 },
): GroupRequest[] {
  return Array.from({ length: Math.ceil(tasks.length / size) }, (_, group) => ({
    ...common,
    group: after.group + group,
    firstTask: after.firstTask + group * size,
    tasks: tasks.slice(group * size, (group + 1) * size),
    retries: Math.min(size, Math.max(0, retries - group * size)),
  }));
}

export interface EvaluationPorts extends Pick<TrainingPorts, 'rollout'> {
  /** The groups, with what the lowest tier passed judged by another one. Left out where there is no ladder. */
  verifyAbove?: (request: EvaluationRequest, groups: readonly GroupResult[]) => Promise<GroupResult[]>;
}

/**
 * Measures a checkpoint: some samples of each task, judged by the tier that the verification names. Where no episode
 * could be judged, whatever the reason, that is no success of zero: whoever decides by it must ask first.
 */
export async function evaluate(
  ports: EvaluationPorts,
  request: EvaluationRequest,
): Promise<EvaluationResult> {
  const tasks = evaluationTasks(request);
  const samples = request.samples ?? 1;
  const groups = shareOut(tasks, Math.max(1, Math.floor(EPISODES_PER_GROUP / samples)), {
    run: request.run,
    seed: request.seed,
    stage: request.name,
    step: request.step,
    samples,
    checkpoint: request.checkpoint,
    ...(request.policy && { policy: request.policy }),
    ...(request.agent && { agent: request.agent }),
    sampling: request.sampling,
    ...(request.beams && { beams: request.beams }),
    reward: request.reward,
  });
  const rolledOut = await ports.rollout(groups);
  const results = isVerifiedAbove(request) ? await verifyAbove(ports, request, rolledOut) : rolledOut;
  const summary = summarize(results);
  return {
    arms: summary.arms,
    outcomes: summary.outcomes,
    meanReward: summary.rewardCount === 0 ? 0 : summary.rewardSum / summary.rewardCount,
    sampledTokens: summary.sampledTokens,
    spans: addSpans(
      [],
      results.flatMap((result) => result.spans),
    ),
    ...(summary.conduct && { conduct: summary.conduct }),
    ...(request.distinct && { distinct: distinctOf(summary.behaviour, samples) }),
    incidents: summary.incidents,
  };
}

/** Every task of a group that was rolled out has all of its samples. */
function distinctOf({ episodes, duplicateEpisodes }: GroupCounts['behaviour'], samples: number): Proportion {
  const trials = episodes - episodes / samples;
  return { successes: trials - duplicateEpisodes, trials };
}

const isVerifiedAbove = ({ verification, reward }: EvaluationRequest): boolean =>
  verification !== undefined && verification.evaluateBy !== reward.ladder?.verifier;

function verifyAbove(
  { verifyAbove }: EvaluationPorts,
  request: EvaluationRequest,
  groups: readonly GroupResult[],
): Promise<GroupResult[]> {
  if (!verifyAbove)
    throw new Error(`${request.verification!.evaluateBy} needs workflows, and there are none here`);
  return verifyAbove(request, groups);
}

/** What is counted of a group's episodes. */
export type GroupCounts = Pick<
  GroupResult,
  | 'arms'
  | 'outcomes'
  | 'rewardSum'
  | 'rewardCount'
  | 'sampledTokens'
  | 'sampledBy'
  | 'inheritedTokens'
  | 'sampledLogprob'
  | 'turns'
  | 'behaviour'
  | 'conduct'
  | 'tried'
>;

/** Of a group that brought nothing. */
export const noCounts = (): GroupCounts => ({
  arms: [],
  outcomes: noOutcomes(),
  rewardSum: 0,
  rewardCount: 0,
  sampledTokens: 0,
  sampledLogprob: 0,
  turns: 0,
  behaviour: noBehaviour(),
});

export interface RolloutSummary extends GroupCounts {
  /** Tasks that fewer than half of their samples solved. */
  failedTasks: TaskRef[];
  /** Why groups failed as a whole. */
  failures: string[];
  incidents: Incident[];
}

/**
 * Entropy of the policy in nats a sampled token, at its temperature: the mean of −log p over what it sampled, whatever
 * became of it, which is an estimate without bias and needs no learner step. null where nothing was sampled.
 */
export const sampledEntropy = ({
  sampledTokens,
  sampledLogprob,
}: Pick<RolloutSummary, 'sampledTokens' | 'sampledLogprob'>): number | null =>
  sampledTokens === 0 ? null : -sampledLogprob / sampledTokens;

/** Adds up what groups brought, in the order of the groups. */
export function summarize(results: readonly GroupResult[]): RolloutSummary {
  const arms = new Map<string, ArmTally>();
  const summary: RolloutSummary = { ...noCounts(), failedTasks: [], failures: [], incidents: [] };
  const { outcomes } = summary;
  for (const result of results) {
    for (const tally of result.arms) {
      const sum: ArmTally = arms.get(armName(tally.arm)) ?? { arm: tally.arm, successes: 0, trials: 0 };
      sum.successes += tally.successes;
      sum.trials += tally.trials;
      if (tally.toolFailures) sum.toolFailures = (sum.toolFailures ?? 0) + tally.toolFailures;
      arms.set(armName(tally.arm), sum);
    }
    for (const kind of Object.keys(outcomes) as OutcomeKind[]) outcomes[kind] += result.outcomes[kind];
    summary.rewardSum += result.rewardSum;
    summary.rewardCount += result.rewardCount;
    summary.sampledTokens += result.sampledTokens;
    if (result.inheritedTokens)
      summary.inheritedTokens = (summary.inheritedTokens ?? 0) + result.inheritedTokens;
    summary.sampledLogprob += result.sampledLogprob;
    summary.turns += result.turns;
    summary.behaviour = addBehaviour(summary.behaviour, result.behaviour);
    if (result.tried) summary.tried = [...(summary.tried ?? []), ...result.tried];
    summary.failedTasks.push(...failedTasksOf(result));
    if (result.failure !== undefined) summary.failures.push(result.failure);
    summary.incidents = addIncidents(summary.incidents, result.incidents ?? []);
  }
  summary.arms = [...arms.values()].toSorted((a, b) =>
    armName(a.arm).localeCompare(armName(b.arm), 'en', { numeric: true }),
  );
  const howSolved = addByArm(results.flatMap((result) => result.conduct ?? []));
  return howSolved.length === 0 ? summary : { ...summary, conduct: howSolved };
}
