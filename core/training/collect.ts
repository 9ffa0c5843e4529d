import { addIncidents } from '../episode/incidents.ts';
import type { TrainingPorts } from '../ports.ts';
import type { BlobRef, TaskRef } from '../refs.ts';
import type { GroupRequest, GroupResult, Span } from '../requests.ts';
import { shareOut, summarize } from './evaluation.ts';
import type { RolloutSummary } from './evaluation.ts';
import type { CollectSpec } from '../spec.ts';
import { adjustedSampling } from './adjusted.ts';
import type { StageInput, StageState } from './stage.ts';
import { drawTasks, indexesPerStep } from './task-draw.ts';
import type { LateMove } from './task-draw.ts';

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
  /** Failed tasks that wait to be drawn again. */
  failures: TaskRef[];
  spans: Span[];
}

/** The episodes of a step: stored ones, or those that the policy samples now. */
export const collect = (
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
  const groups = await ports.stored({
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
    summary: summarize(groups),
    groups: trajectoriesOf(groups),
    offered: [],
    moves: [],
    greedy: [],
    failures,
    spans: groups.flatMap(({ spans }) => spans),
  };
}

/**
 * Rolls out the tasks of a step under the policy that learns, takes what came of them up the ladder, and refills: as long
 * as the plan allows, other tasks are drawn in the place of those whose samples are all worth the same to the fast tier.
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
  const requests = shareOut(first.tasks, stage.groupsPerWorkflow, common, first.retries);
  const rolledOut = await ports.rollout(requests);
  for (let refill = 1; refill <= plan.refills; refill++) {
    const missing = stage.groupsPerStep - tellingApart(rolledOut);
    if (missing <= 0) break;
    const used = refill * stage.groupsPerStep;
    const more = drawTasks({ ...draw, used, count: missing, failures: [], retryFailures: 0 });
    const next = shareOut(more.tasks, stage.groupsPerWorkflow, common, 0, {
      group: requests.length,
      firstTask: tasks.length,
    });
    requests.push(...next);
    tasks.push(...more.tasks);
    rolledOut.push(...(await ports.rollout(next)));
  }
  const greedy = plan.greedy ? await rollOutGreedily(ports, requests, tasks.length) : [];

  const climbed = input.spec.verification ? await climb(ports, input, step, rolledOut) : null;
  const results = climbed?.groups ?? rolledOut;
  const summary = summarize(results);
  summary.incidents = addIncidents(climbed?.incidents ?? [], summary.incidents);
  return {
    summary,
    groups: trajectoriesOf(results),
    offered: climbed?.offered ?? [],
    moves: climbed?.moves ?? [],
    greedy: trajectoriesOf(greedy),
    failures: first.failures,
    spans: [...[...rolledOut, ...greedy].flatMap(({ spans }) => spans), ...(climbed?.spans ?? [])],
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
  samples: stage.numGenerations,
  checkpoint,
  sampling: adjustedSampling(spec.sampling, adjusted),
  reward: spec.reward,
});

/** Tasks whose samples are not all worth the same. */
const tellingApart = (results: readonly GroupResult[]): number =>
  results.reduce((sum, { behaviour }) => sum + behaviour.rewardGroups - behaviour.equalRewards, 0);

const trajectoriesOf = (results: readonly GroupResult[]): BlobRef[] =>
  results.flatMap(({ trajectories }) => (trajectories === null ? [] : [trajectories]));

/** The same tasks again, one sample each, with nothing left to chance. */
function rollOutGreedily(
  ports: TrainingPorts,
  requests: readonly GroupRequest[],
  tasks: number,
): Promise<GroupResult[]> {
  return ports.rollout(
    requests.map((request) => ({
      ...request,
      group: requests.length + request.group,
      firstTask: tasks + request.firstTask,
      samples: 1,
      sampling: { ...request.sampling, topK: 1, topP: 1 },
    })),
  );
}

/** Groups that failed as a whole have nothing to climb with. `incidents` are of the rollout of those that climb. */
async function climb(
  ports: TrainingPorts,
  { spec, stage }: StageInput,
  step: number,
  groups: readonly GroupResult[],
) {
  const rolledOut = groups.filter(({ trajectories }) => trajectories !== null);
  const failed = groups.filter(({ trajectories }) => trajectories === null);
  const climbed = await ports.climb({
    stage: stage.name,
    step,
    groups: rolledOut.map(({ trajectories }) => trajectories!),
    budgets: stage.budgets ?? {},
    reward: spec.reward,
  });
  const { incidents } = summarize(rolledOut);
  return { ...climbed, groups: [...climbed.groups, ...failed], incidents };
}
