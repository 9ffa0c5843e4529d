import { addIncidents } from '../episode/incidents.ts';
import type { TrainingPorts } from '../ports.ts';
import type { BlobRef } from '../refs.ts';
import type { GroupRequest, GroupResult, RelabelResult, Span } from '../requests.ts';
import type { Plan } from '../algorithms/method.ts';
import { shareOut, summarize } from './evaluation.ts';
import type { RolloutSummary } from './evaluation.ts';
import type { CollectSpec } from '../schema/collect.ts';
import type { StageInput, StageState } from './stage.ts';
import { samplingAt } from './exploration.ts';
import { drawTasks, indexesPerStep } from './task-draw.ts';
import type { LateMove } from './task-draw.ts';
import { failedTasksOf } from './tasks-again.ts';
import type { WaitingTask } from './tasks-again.ts';

/** What a step has to learn from. */
export interface Collected {
  summary: RolloutSummary;
  /** Trajectories of the groups that did not fail as a whole. */
  groups: BlobRef[];
  /** Of earlier steps, whose verdicts came late. */
  offered: BlobRef[];
  moves: readonly LateMove[];
  /** One sample of each task, of the likeliest token each time; where the plan asks for it. */
  greedy: BlobRef[];
  /** Why there is none of them, where the plan asks for it. */
  greedyFailure?: string | undefined;
  /** Tokens that were sampled besides those of the summary: for baselines, and with hints. */
  otherTokens: number;
  /** Tasks that wait to be drawn again, and those that were. */
  failures: WaitingTask[];
  again: WaitingTask[];
  spans: Span[];
}

/** The episodes of a step: stored ones, or those that the policy samples now. */
export const collectRollouts = (
  ports: TrainingPorts,
  input: StageInput,
  state: StageState,
  step: number,
): Promise<Collected> => {
  const { collect: how } = input.stage;
  return how.kind === 'stored'
    ? takeStored(ports, input, state, step, how)
    : sample(ports, input, state, step);
};

async function takeStored(
  ports: TrainingPorts,
  { spec, stage }: StageInput,
  { checkpoint, failures }: StageState,
  step: number,
  { run = spec.run, stage: name, steps }: Extract<CollectSpec, { kind: 'stored' }>,
): Promise<Collected> {
  const { groups, ...counts } = await ports.stored({
    run: spec.run,
    seed: spec.seed,
    stage: stage.name,
    step,
    from: { run, stage: name, steps },
    arms: stage.arms,
    count: stage.groupsPerStep,
    reward: spec.reward,
    checkpoint,
  });
  return {
    summary: summarize([{ trajectories: null, ...counts }]),
    groups,
    offered: [],
    moves: [],
    greedy: [],
    otherTokens: 0,
    failures,
    again: [],
    spans: counts.spans,
  };
}

/**
 * Rolls out the tasks of a step under the policy that learns, takes what came of them up the ladder, and refills: as long
 * as the plan allows, other tasks are drawn in the place of those that teach nothing, by what the fast tier says.
 */
async function sample(
  ports: TrainingPorts,
  input: StageInput,
  state: StageState,
  step: number,
): Promise<Collected> {
  const { stage } = input;
  const { plan } = stage;
  const draw = {
    seed: input.spec.seed,
    stage: stage.name,
    step,
    arms: stage.arms,
    tasksBefore: input.tasksBefore,
    indexesPerStep: indexesPerStep(stage),
    estimates: state.estimates,
  };
  const first = drawTasks({
    ...draw,
    count: stage.groupsPerStep,
    failures: state.failures,
    retryFailures: stage.retryFailures,
  });
  const common = commonOf(input, state, step);
  const tasks = [...first.tasks];
  const requests = shareOut(first.tasks, stage.groupsPerWorkflow, common, first.again.length);
  const rolledOut = await ports.rollout(requests);
  let latest = rolledOut;
  for (let refill = 1; refill <= plan.refills; refill++) {
    const missing = stage.groupsPerStep - teaching(rolledOut, plan);
    // Where no group has two rewards, a tool is away or verdicts are to come: other tasks would fare no better.
    if (missing <= 0 || !latest.some(({ behaviour }) => behaviour.rewardGroups > 0)) break;
    const used = refill * stage.groupsPerStep;
    const more = drawTasks({ ...draw, used, count: missing, failures: [], retryFailures: 0 });
    const next = shareOut(more.tasks, stage.groupsPerWorkflow, common, 0, {
      group: requests.length,
      firstTask: tasks.length,
    });
    requests.push(...next);
    tasks.push(...more.tasks);
    latest = await ports.rollout(next);
    rolledOut.push(...latest);
  }
  const grown = await grow(ports, stage, requests, rolledOut);
  const after = { group: requests.length + grown.length, firstTask: tasks.length };
  const greedy = plan.greedy ? await rollOutGreedily(ports, requests, after) : [];

  const corrections = await correct(ports, input, requests, rolledOut, after);
  const sampled = [...rolledOut, ...grown];
  const relabelled = await relabel(ports, input, state, step, rolledOut);

  const escalated = input.spec.verification ? await escalateGroups(ports, input, step, sampled) : null;
  const results = escalated?.groups ?? sampled;
  const summary = summarize(results);
  for (const incidents of [
    escalated?.incidents,
    relabelled?.incidents,
    ...greedy.map((group) => group.incidents),
    ...corrections.map((group) => group.incidents),
  ])
    summary.incidents = addIncidents(incidents ?? [], summary.incidents);
  return {
    summary,
    groups: [
      ...trajectoriesOf(results),
      ...trajectoriesOf(corrections),
      ...trajectoriesOf(relabelled ? [relabelled] : []),
    ],
    offered: escalated?.offered ?? [],
    moves: escalated?.moves ?? [],
    greedy: trajectoriesOf(greedy),
    greedyFailure: plan.greedy && trajectoriesOf(greedy).length === 0 ? greedy[0]?.failure : undefined,
    otherTokens: sampledTokensOf([...greedy, ...corrections]),
    failures: first.failures,
    again: first.again,
    spans: [...sampled, ...greedy, ...corrections, relabelled, escalated].flatMap((one) => one?.spans ?? []),
  };
}

const commonOf = (
  { spec, stage }: StageInput,
  { checkpoint, adjusted }: StageState,
  step: number,
): Omit<GroupRequest, 'group' | 'firstTask' | 'tasks' | 'retries'> => ({
  run: spec.run,
  seed: spec.seed,
  stage: stage.name,
  step,
  samples: stage.collect.kind === 'tree' ? stage.collect.roots : stage.numGenerations,
  checkpoint,
  ...(spec.policy && { policy: spec.policy }),
  ...(spec.agent && { agent: spec.agent }),
  sampling: samplingAt(stage, spec.sampling, step, adjusted),
  ...(stage.exploration?.toolChoice && { toolChoice: stage.exploration.toolChoice }),
  reward: spec.reward,
});

/** Tasks that teach something. */
const teaching = (results: readonly GroupResult[], { refillBy }: Pick<Plan, 'refillBy'>): number =>
  results.reduce(
    (sum, { behaviour: { rewardGroups, equalRewards, mixedGroups = 0 } }) =>
      sum + (refillBy === 'correctness' ? mixedGroups : rewardGroups - equalRewards),
    0,
  );

const sampledTokensOf = (results: readonly GroupResult[]): number =>
  results.reduce((sum, { sampledTokens }) => sum + sampledTokens, 0);

const trajectoriesOf = (results: readonly Pick<GroupResult, 'trajectories'>[]): BlobRef[] =>
  results.flatMap(({ trajectories }) => (trajectories === null ? [] : [trajectories]));

/** Without tools that are drawn: what is a baseline, or a correction, is the policy's own. */
function unexplored(request: GroupRequest): GroupRequest {
  const { toolChoice: _, ...own } = request;
  return own;
}

/**
 * The rest of the samples of a tree, round by round, where the stage collects trees: each round branches off what those
 * before it have left, in groups of its own, whose numbers follow. A group that failed as a whole does not grow.
 */
async function grow(
  ports: TrainingPorts,
  { collect: how, numGenerations }: StageInput['stage'],
  requests: readonly GroupRequest[],
  rolledOut: readonly GroupResult[],
): Promise<GroupResult[]> {
  if (how.kind !== 'tree') return [];
  const { roots, branches, width, exploration } = how;
  const growing = requests.flatMap((request, i) => {
    const { trajectories } = rolledOut[i]!;
    return trajectories === null ? [] : [{ request, trees: [trajectories] }];
  });
  const grown: GroupResult[] = [];
  for (let samples = roots; samples < numGenerations; samples += branches) {
    const results = await ports.rollout(
      growing.map(({ request, trees }, i) => ({
        ...request,
        group: requests.length + grown.length + i,
        samples: Math.min(branches, numGenerations - samples),
        grows: { trees: [...trees], width, exploration },
      })),
    );
    results.forEach(({ trajectories }, i) => trajectories && growing[i]!.trees.push(trajectories));
    grown.push(...results);
  }
  return grown;
}

/** Numbers of the groups and tasks of a step that have been given out. */
interface Numbered {
  group: number;
  firstTask: number;
}

/** The same tasks again, one sample each, with nothing left to chance. */
function rollOutGreedily(
  ports: TrainingPorts,
  requests: readonly GroupRequest[],
  after: Numbered,
): Promise<GroupResult[]> {
  return ports.rollout(
    requests.map(unexplored).map((request) => ({
      ...request,
      group: after.group + request.group,
      firstTask: after.firstTask + request.firstTask,
      samples: 1,
      sampling: { ...request.sampling, topK: 1, topP: 1 },
    })),
  );
}

/** Failed tasks again, with hints made of what went wrong; where the plan asks for it. */
async function correct(
  ports: TrainingPorts,
  { spec, stage }: StageInput,
  requests: readonly GroupRequest[],
  rolledOut: readonly GroupResult[],
  after: Numbered,
): Promise<GroupResult[]> {
  const { hindsight } = stage.plan;
  if (!hindsight || hindsight.corrections === 0) return [];
  const again = requests.map(unexplored).flatMap((request, i): GroupRequest[] => {
    const { trajectories } = rolledOut[i]!;
    const failedTasks = failedTasksOf(rolledOut[i]!);
    if (trajectories === null || failedTasks.length === 0) return [];
    return [
      {
        ...request,
        group: after.group + request.group,
        firstTask: after.firstTask + request.firstTask,
        tasks: failedTasks,
        retries: 0,
        samples: hindsight.corrections,
        ...(hindsight.teacher !== null && { checkpoint: spec.checkpoints![hindsight.teacher]! }),
        failed: trajectories,
      },
    ];
  });
  return again.length === 0 ? [] : ports.rollout(again);
}

/** Failed episodes that solved another task; where the plan asks for it. */
async function relabel(
  ports: TrainingPorts,
  { spec, stage }: StageInput,
  { checkpoint }: StageState,
  step: number,
  rolledOut: readonly GroupResult[],
): Promise<RelabelResult | null> {
  const failed = rolledOut.filter(({ arms }) => arms.some(({ successes, trials }) => successes < trials));
  const groups = trajectoriesOf(failed);
  if (!stage.plan.hindsight?.relabel || groups.length === 0) return null;
  const { run, reward } = spec;
  return ports.relabel({ run, stage: stage.name, step, groups, reward, checkpoint });
}

/** Groups that failed as a whole have nothing to escalate. `incidents` are of the rollout of those that are escalated. */
async function escalateGroups(
  ports: TrainingPorts,
  { spec, stage }: StageInput,
  step: number,
  groups: readonly GroupResult[],
) {
  const rolledOut = groups.filter(({ trajectories }) => trajectories !== null);
  const failed = groups.filter(({ trajectories }) => trajectories === null);
  const escalated = await ports.escalate({
    stage: stage.name,
    step,
    groups: rolledOut.map(({ trajectories }) => trajectories!),
    budgets: stage.budgets ?? {},
    reward: spec.reward,
  });
  const { incidents } = summarize(rolledOut);
  return { ...escalated, groups: [...escalated.groups, ...failed], incidents };
}
