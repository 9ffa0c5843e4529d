import { addIncidents } from '../episode/incidents.ts';
import type { TrainingPorts } from '../ports.ts';
import type { Proportion } from '../statistics/intervals.ts';
import type { BlobRef, MadeTaskRef } from '../refs.ts';
import type { StoredResult } from '../requests/batch.ts';
import type { GroupRequest } from '../requests/rollout.ts';
import type { Span } from '../requests/span.ts';
import type { GroupResult, RelabelResult } from '../requests/verification.ts';
import type { Plan } from '../algorithms/method.ts';
import type { RewardSpec } from '../schema/reward.ts';
import type { RlStageSpec } from '../schema/stages/rl.ts';
import { judgeTokens } from './behaviour.ts';
import { shareOut, summarize } from './evaluation.ts';
import type { RolloutSummary } from './evaluation.ts';
import type { CollectSpec } from '../schema/collect.ts';
import type { StageInput, StageState } from './stage.ts';
import { total } from './stage-policy.ts';
import { samplingAt } from './exploration.ts';
import { drawVaried } from './from-failures.ts';
import { playBothRoles } from './self-play.ts';
import type { Played } from './self-play.ts';
import { playedRoles, trainedRoles } from './roles.ts';
import { drawTasks, indexesPerStep } from './task-draw.ts';
import type { Drawn, LateMove } from './task-draw.ts';
import { failedTasksOf } from './tasks-again.ts';
import type { WaitingTask } from './tasks-again.ts';

/** What a step has rolled out, or taken from the store, before the ladder; plain data, for it may be carried along. */
export interface Gathered {
  /** Of rollouts, and of the rounds of trees; as many as child workflows. */
  results: GroupResult[];
  /** Of failed tasks, with hints. */
  corrections: GroupResult[];
  /** One sample of each task, of the likeliest token each time; where the plan asks for it. */
  greedy: GroupResult[];
  relabelled: RelabelResult | null;
  /** In place of all of the above: groups that were in the store. */
  stored: StoredResult | null;
  /** Of a step of self-play, whose solver's groups are the `results`; absent of others. */
  played?: Omit<Played, 'solved'>;
}

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
  /** Tokens that were sampled besides those of the summary: for baselines, with hints, and by an opponent. */
  otherTokens: number;
  /** Of samples with hints: those that succeed, of those of which it is known; absent where there are none. */
  hinted?: Proportion;
  /** Of a step of self-play: tasks that are there for later ones, and what its roles came to; absent of others. */
  played?: Pick<Played, 'made' | 'facts'>;
  spans: Span[];
}

/** What the episodes of a step follow from: the policy that samples, and what is known of tasks when they are drawn. */
export type DrawnFrom = Pick<
  StageState,
  'checkpoint' | 'adjusted' | 'estimates' | 'failures' | 'selfPlay' | 'league'
>;

/** A step whose episodes are being collected. */
export interface Gathering {
  /** Tasks that waited to be drawn again, and were. */
  again: WaitingTask[];
  gathered: Promise<Gathered>;
}

/** Draws the tasks of a step, and begins to collect its episodes: stored ones, or those that the policy samples. */
export function gather(
  ports: TrainingPorts,
  input: StageInput,
  from: DrawnFrom,
  step: number,
  /** Tasks; fewer than those of a step where others are replayed. */
  count = input.stage.groupsPerStep,
): Gathering {
  const { collect: how } = input.stage;
  if (how.kind === 'stored') return { again: [], gathered: takeStored(ports, input, from, step, how) };
  if (input.stage.selfPlay) return { again: [], gathered: play(ports, input, from, step) };
  const drawn = drawTasks({
    ...drawOf(input, from, step),
    count,
    failures: from.failures,
    retryFailures: input.stage.retryFailures,
    varied: variedIn(input, step, count),
  });
  return { again: drawn.again, gathered: sample(ports, input, from, step, drawn, count) };
}

/** A group whose tasks are drawn, and which no weights sample yet. */
export type DrawnGroup = Pick<GroupRequest, 'step' | 'firstTask' | 'tasks' | 'retries'> & {
  /** Those of its tasks that waited to be drawn again. */
  again: WaitingTask[];
};

/** Draws the tasks of a step, for groups that are begun one by one. */
export function drawGroups(
  input: StageInput,
  from: Pick<DrawnFrom, 'estimates' | 'failures'>,
  step: number,
): DrawnGroup[] {
  const { groupsPerStep, groupsPerWorkflow: size, retryFailures } = input.stage;
  const { failures } = from;
  const { tasks, again } = drawTasks({
    ...drawOf(input, from, step),
    count: groupsPerStep,
    failures,
    retryFailures,
    varied: variedIn(input, step, groupsPerStep),
  });
  return Array.from({ length: Math.ceil(tasks.length / size) }, (_, place) => {
    const firstTask = place * size;
    const of = again.slice(firstTask, firstTask + size);
    return {
      step,
      firstTask,
      tasks: tasks.slice(firstTask, firstTask + size),
      retries: of.length,
      again: of,
    };
  });
}

/** Rolls out one group, with all that the plan asks for, which has the next number. */
export async function sampleGroup(
  ports: TrainingPorts,
  input: StageInput,
  from: Pick<DrawnFrom, 'checkpoint' | 'adjusted'> & Pick<GroupRequest, 'continues'>,
  { step, group, firstTask, tasks, retries }: DrawnGroup & Pick<GroupRequest, 'group'>,
): Promise<Gathered> {
  const { groupsPerStep, plan } = input.stage;
  const { continues } = from;
  const common = { ...commonOf(input, from, step), ...(continues && { continues }) };
  const requests = [{ ...common, group, firstTask, tasks, retries }];
  const results = await ports.rollout(requests);
  const after = { group: 1, firstTask: groupsPerStep };
  const greedy = plan.greedy ? await rollOutGreedily(ports, requests, after) : [];
  const corrections = await correct(ports, input, requests, results, after);
  return { results, corrections, greedy, relabelled: null, stored: null };
}

const drawOf = (
  { spec, stage, tasksBefore }: StageInput,
  { estimates }: Pick<DrawnFrom, 'estimates'>,
  step: number,
) => ({
  seed: spec.seed,
  stage: stage.name,
  step,
  arms: stage.arms,
  tasksBefore,
  indexesPerStep: indexesPerStep(stage),
  estimates,
});

/** The variations among the tasks of a step, where its stage has any. */
const variedIn = ({ spec, stage, varied }: StageInput, step: number, count: number): MadeTaskRef[] =>
  stage.fromFailures && varied
    ? drawVaried({
        seed: spec.seed,
        stage: stage.name,
        step,
        arms: stage.arms,
        varied,
        part: stage.fromFailures.part,
        groupsPerStep: stage.groupsPerStep,
        count,
      })
    : [];

async function takeStored(
  ports: TrainingPorts,
  { spec, stage }: StageInput,
  { checkpoint }: DrawnFrom,
  step: number,
  { run = spec.run, stage: name, steps }: Extract<CollectSpec, { kind: 'stored' }>,
): Promise<Gathered> {
  const stored = await ports.stored({
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
  return { results: [], corrections: [], greedy: [], relabelled: null, stored };
}

/** Both roles of a step of self-play. */
async function play(
  ports: TrainingPorts,
  input: StageInput,
  from: DrawnFrom,
  step: number,
): Promise<Gathered> {
  const { solved, ...played } = await playBothRoles(ports, input, from, step, commonOf(input, from, step));
  return { results: solved, corrections: [], greedy: [], relabelled: null, stored: null, played };
}

/**
 * Rolls out the tasks of a step, and refills: as long as the plan allows, other tasks are drawn in the place of those that
 * teach nothing, by what the fast tier says.
 */
async function sample(
  ports: TrainingPorts,
  input: StageInput,
  from: DrawnFrom,
  step: number,
  first: Drawn,
  count: number,
): Promise<Gathered> {
  const { stage } = input;
  const { plan } = stage;
  const common = commonOf(input, from, step);
  const tasks = [...first.tasks];
  const requests = shareOut(first.tasks, stage.groupsPerWorkflow, common, first.again.length);
  const rolledOut = await ports.rollout(requests);
  let latest = rolledOut;
  for (let refill = 1; refill <= plan.refills; refill++) {
    const missing = count - teaching(rolledOut, plan);
    // Where no group has two rewards, a tool is away or verdicts are to come: other tasks would fare no better.
    if (missing <= 0 || !latest.some(({ behaviour }) => behaviour.rewardGroups > 0)) break;
    const used = refill * stage.groupsPerStep;
    const draw = drawOf(input, from, step);
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
  const relabelled = await relabel(ports, input, from, step, rolledOut);
  return { results: [...rolledOut, ...grown], corrections, greedy, relabelled, stored: null };
}

/** What came of it, after those candidates that the spec sends up the ladder have been there. */
export async function collect(
  ports: TrainingPorts,
  input: StageInput,
  step: number,
  { results: sampled, corrections, greedy, relabelled, stored, played }: Gathered,
): Promise<Collected> {
  if (stored !== null) {
    const { groups, ...counts } = stored;
    const summary = summarize([{ trajectories: null, ...counts }]);
    return { summary, groups, offered: [], moves: [], greedy: [], otherTokens: 0, spans: counts.spans };
  }
  const { plan, selfPlay } = input.stage;
  const proposed = played?.proposed ?? [];
  const plays = playedRoles(selfPlay ?? {});
  const trains = selfPlay ? trainedRoles(selfPlay) : { proposer: false, solver: true };
  const escalated = input.spec.verification ? await escalateGroups(ports, input, step, sampled) : null;
  const results = escalated?.groups ?? sampled;
  const summary = summarize([...(plays.proposer ? proposed : []), ...(plays.solver ? results : [])]);
  const opponents = summarize([...(plays.proposer ? [] : proposed), ...(plays.solver ? [] : results)]);
  summary.failures.push(...opponents.failures);
  for (const incidents of [
    escalated?.incidents,
    relabelled?.incidents,
    played?.incidents,
    opponents.incidents,
    ...greedy.map((group) => group.incidents),
    ...corrections.map((group) => group.incidents),
  ])
    summary.incidents = addIncidents(incidents ?? [], summary.incidents);
  return {
    summary,
    groups: [
      ...(trains.proposer ? trajectoriesOf(proposed) : []),
      ...(trains.solver ? trajectoriesOf(results) : []),
      ...trajectoriesOf(corrections),
      ...trajectoriesOf(relabelled ? [relabelled] : []),
    ],
    offered: escalated?.offered ?? [],
    moves: escalated?.moves ?? [],
    greedy: trajectoriesOf(greedy),
    greedyFailure: plan.greedy && trajectoriesOf(greedy).length === 0 ? greedy[0]?.failure : undefined,
    otherTokens:
      sampledTokensOf([...greedy, ...corrections]) +
      judgeTokensOf([...greedy, ...corrections]) +
      opponents.sampledTokens,
    ...(corrections.length > 0 && { hinted: total(corrections.flatMap(({ arms }) => arms)) }),
    ...(played && { played: { made: played.made, facts: played.facts } }),
    spans: [...sampled, ...greedy, ...corrections, relabelled, escalated, played].flatMap(
      (one) => one?.spans ?? [],
    ),
  };
}

const commonOf = (
  { spec, stage, rewardModel, reference }: StageInput,
  { checkpoint, adjusted }: Pick<DrawnFrom, 'checkpoint' | 'adjusted'>,
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
  ...(rewardModel && { rewardModel }),
  ...(judgesIn(spec.reward, stage) && {
    judge: { checkpoint: spec.reward.judge!.by === 'reference' ? reference : checkpoint },
  }),
});

const judgesIn = ({ judge }: RewardSpec, { name }: Pick<RlStageSpec, 'name'>): boolean =>
  judge !== undefined && (judge.stages?.includes(name) ?? true);

/** Tasks that teach something. */
const teaching = (results: readonly GroupResult[], { refillBy }: Pick<Plan, 'refillBy'>): number =>
  results.reduce(
    (sum, { behaviour: { rewardGroups, equalRewards, mixedGroups = 0 } }) =>
      sum + (refillBy === 'correctness' ? mixedGroups : rewardGroups - equalRewards),
    0,
  );

const sampledTokensOf = (results: readonly GroupResult[]): number =>
  results.reduce((sum, { sampledTokens }) => sum + sampledTokens, 0);

const judgeTokensOf = (results: readonly GroupResult[]): number =>
  results.reduce((sum, { behaviour }) => sum + judgeTokens(behaviour), 0);

const trajectoriesOf = (results: readonly Pick<GroupResult, 'trajectories'>[]): BlobRef[] =>
  results.flatMap(({ trajectories }) => (trajectories === null ? [] : [trajectories]));

/** Without tools that are drawn, or newer weights: what is a baseline, or a correction, is the policy's own. */
function unexplored(request: GroupRequest): GroupRequest {
  const { toolChoice: _, continues: __, ...own } = request;
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
  { checkpoint }: DrawnFrom,
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
