import { z } from 'zod';
import { amount, count, fraction, name, runName } from '../fields.ts';
import { MOST_EPISODES } from '../algorithms/surrogate.ts';
import { armName } from '../names.ts';
import { isOfGroup } from '../reward/rules.ts';
import type { Refuse } from './check.ts';
import { didYouMean } from '../did-you-mean.ts';
import type { Path } from './strict.ts';
import type { RewardRule } from './reward-rules.ts';
import type { SamplingSpec } from './sampling.ts';
import { armsOf } from './tasks.ts';
import type { WrittenTasks } from './tasks.ts';
import type { WrittenVerification } from './verification.ts';

const step = count(1e6, 'no stage has more steps');

/** Whose episodes are read. */
export const storedStepsSchema = z
  .strictObject({
    from: step.default(1).describe('The first step.'),
    to: step.optional().describe('The last step. Default: the last one that is done.'),
  })
  .optional()
  .describe('Both included. Default: all.');

/** Steps that are collected beside the one that is trained. */
const MOST_LAG = 16;
/** Child workflows of steps that are begun together: what they bring is carried along where a stage continues as new. */
const MOST_BEGUN = 128;

/** Tasks that are rolled out at once. */
const MOST_IN_FLIGHT = 4096;

/** Tasks of later steps: their names are carried along, and Temporal takes no more than 2 MiB. */
const MOST_AHEAD = 4096;

/** Tasks and objects of earlier steps that a stage carries along. */
const MOST_BUFFERED = 4096;
const MOST_OBJECTS = 512;

/** Of each kind whose samples may be older than a step. */
export const allowUnclipped = z
  .literal(true)
  .optional()
  .describe(
    'Train a loss without a clip (remax) on samples that may be 2 or more steps old. Default: refuse it.',
  );

/** Where a stage's episodes come from. */
export const collectSchema = z
  .discriminatedUnion('kind', [
    z
      .strictObject({
        kind: z.literal('on-policy').describe('Sample with the policy that is trained. The default.'),
      })
      .describe('The policy that is trained samples them.'),
    z
      .strictObject({
        kind: z.literal('pipelined').describe('Sample for the next steps while the learner works.'),
        lag: count(MOST_LAG, 'the samples would be of another policy', 0)
          .default(1)
          .describe(
            'Steps by which the policy that samples is behind the one that is trained; 0 is on-policy.',
          ),
        allowUnclipped,
      })
      .describe(
        'The policy that was trained until `lag` steps before samples them, so rollouts do not wait for the learner. Losses weigh them by importance.',
      ),
    z
      .strictObject({
        kind: z.literal('asynchronous').describe('Sample all the time, whatever the learner does.'),
        maxStaleness: count(MOST_LAG, 'the samples would be of another policy', 0)
          .default(2)
          .describe(
            'Learner steps by which the policy that is trained may be ahead of the one that sampled, time in the queue included. A bound that holds, and nothing is thrown away for it. 0 is on-policy.',
          ),
        inFlight: count(MOST_IN_FLIGHT, 'they would wait for workers')
          .optional()
          .describe(
            'Tasks that are rolled out at once, at most. Default: as many as maxStaleness allows, (maxStaleness + 1) × groupsPerStep.',
          ),
        onNewWeights: z
          .enum(['finish', 'continue'])
          .optional()
          .describe(
            'What an episode that is under way does when there are newer weights: finish with those that it began with, or continue with the newest from its next turn on. Default: finish.',
          ),
        follow: runName
          .optional()
          .describe(
            'A run of the same spec: each step takes the groups that the step of this run took, sampled by the same weights, so it ends with the same weights. What `gradus recompute` sets.',
          ),
        allowUnclipped,
      })
      .describe(
        'The newest policy samples, and nobody waits for a step: each takes the groups that are there. Losses weigh them by importance.',
      ),
    z
      .strictObject({
        kind: z
          .literal('replay')
          .describe('Sample with the policy that is trained, and train groups of earlier steps again.'),
        part: amount(0.9, 'a step must sample some groups itself')
          .default(0.25)
          .describe(
            'Part of the groups of a step that is replayed, rounded down, as far as there are any; 0 is on-policy. The others are sampled.',
          ),
        maxStaleness: count(MOST_LAG, 'the samples would be of another policy')
          .default(4)
          .describe('Learner steps after which a group is not replayed any more.'),
        priority: z
          .enum(['oldest', 'advantage'])
          .default('oldest')
          .describe(
            'Which groups are replayed first: those that were sampled first, or those with the largest mean |advantage| when they were sampled, and of equal ones the older. A group is replayed once.',
          ),
        minEffectiveSamples: fraction
          .default(0.5)
          .describe(
            'Effective sample size of its importance weights, part of its sampled tokens, below which a group is dropped and another task is sampled; 0 looks at no weights.',
          ),
        successes: z
          .strictObject({
            from: fraction.default(0.5).describe('Probability below which a group is dropped.'),
            to: fraction.default(0.95).describe('Probability above which it is dropped.'),
          })
          .optional()
          .describe(
            'Replay groups with a success alone, and only those whose successes the policy finds neither unlikely nor certain: bounds of the probability of their sampled tokens, as a geometric mean (WebRL, Qi et al. 2024, arXiv 2411.02337). At most twice as many as are sampled. Default: any group.',
          ),
      })
      .describe(
        'The policy that is trained samples a part of each step; the rest are groups of earlier steps of the stage, from a replay buffer. Losses weigh them by importance.',
      ),
    z
      .strictObject({
        kind: z.literal('stored').describe('Take episodes that are in the store.'),
        run: runName.optional().describe('Default: this run.'),
        stage: name.describe('Whose episodes they are; of this run an earlier one.'),
        steps: storedStepsSchema,
      })
      .describe(
        "Episodes of the stage's tasks that an earlier stage or another run has left, in an order drawn by the seed, again and again. Nothing is sampled then, and numGenerations, groupsPerWorkflow and retryFailures have no effect.",
      ),
    z
      .strictObject({
        kind: z.literal('tree').describe('Sample a tree of turns for each task.'),
        roots: count(4095, 'draw more tasks instead')
          .default(4)
          .describe('Samples that begin at the prompt; the others of numGenerations branch off.'),
        branches: count(4095, 'draw more tasks instead')
          .default(4)
          .describe('Samples of each round: where they branch off is chosen by those of the rounds before.'),
        width: count(4096, 'no state has more samples', 2)
          .default(2)
          .describe(
            'Turns that are drawn in a state before the search goes deeper, at least: √N of them where N samples went through it.',
          ),
        exploration: amount(1000, 'rewards would count for nothing')
          .default(0.5)
          .describe(
            'How much a rarely tried turn is preferred to one with a higher reward, in units of reward; 0 follows the rewards alone.',
          ),
      })
      .describe(
        'The policy that is trained samples them. The samples of a task form a tree over turns: some of them go on from a turn of another one.',
      ),
  ])
  .prefault({ kind: 'on-policy' })
  .describe('Where the episodes of the stage come from.');

export type CollectSpec = z.output<typeof collectSchema>;
export type ReplayCollect = Extract<CollectSpec, { kind: 'replay' }>;
export type AsynchronousCollect = Extract<CollectSpec, { kind: 'asynchronous' }>;

/** Learner steps by which the policy that is trained may be ahead of the one that sampled; 0 where all samples are fresh. */
export function mostStaleness(collect: CollectSpec): number {
  if (collect.kind === 'pipelined') return collect.lag;
  if (collect.kind === 'replay') return collect.part > 0 ? collect.maxStaleness : 0;
  return collect.kind === 'asynchronous' ? collect.maxStaleness : 0;
}

/** The field that lets the policy that samples be behind; null where it is not. */
export function lagsBy(collect: CollectSpec): 'lag' | 'maxStaleness' | null {
  if (mostStaleness(collect) === 0) return null;
  return collect.kind === 'asynchronous' ? 'maxStaleness' : 'lag';
}

const MOST_ROUNDS = 64;

/** Of a step, each of which may lie in a group of its own: the names of all pass through one history event. */
const MOST_STORED_TASKS = 4096;

/** Why a step cannot take so many stored tasks, of so many samples each where that is known; null where it can. */
export function refuseStoredTasks(tasks: number, samples = 1): string | null {
  if (tasks > MOST_STORED_TASKS)
    return `takes ${tasks} stored tasks a step, at most ${MOST_STORED_TASKS}: lower it and take more steps`;
  if (tasks * samples > MOST_EPISODES)
    return `takes ${tasks * samples} stored episodes a step, for each task has ${samples}, at most ${MOST_EPISODES}: lower it and take more steps`;
  return null;
}

/** Rounds after the first in which the samples of a task are drawn. */
export const roundsOf = (collect: CollectSpec, numGenerations: number): number =>
  collect.kind === 'tree' ? Math.max(0, Math.ceil((numGenerations - collect.roots) / collect.branches)) : 0;

/** What is looked at of a stage that comes before. */
export interface EarlierStage {
  kind: string;
  name: string;
  tasks: WrittenTasks;
  maxSteps?: number;
  numGenerations?: number;
}

/** `earlier` are the stages of the run before this one. */
export function checkCollect(
  {
    collect,
    groupsPerStep,
    groupsPerWorkflow,
    numGenerations,
    tasks,
  }: {
    collect: CollectSpec;
    groupsPerStep: number;
    groupsPerWorkflow: number;
    numGenerations: number;
    tasks: WrittenTasks;
  },
  {
    verification,
    sampling,
    rules,
    refills,
  }: {
    verification: WrittenVerification | undefined;
    sampling: SamplingSpec;
    /** Of the reward. */
    rules: readonly Pick<RewardRule, 'kind'>[];
    /** What the method asks for. */
    refills: number;
  },
  earlier: readonly EarlierStage[],
  at: Path,
  refuse: Refuse,
): void {
  if (collect.kind === 'tree') {
    if (collect.roots >= numGenerations)
      refuse(
        [...at, 'roots'],
        `are all of the ${numGenerations} samples of a task, and none branches off: lower it, or raise numGenerations`,
      );
    const rounds = roundsOf(collect, numGenerations);
    if (rounds > MOST_ROUNDS)
      refuse(
        [...at, 'branches'],
        `makes ${rounds} rounds, and each names the groups of all before it, at most ${MOST_ROUNDS}: raise it`,
      );
    if (collect.width >= numGenerations)
      refuse(
        [...at, 'width'],
        `all of the ${numGenerations} samples of a task would begin at the prompt: lower it, or raise numGenerations`,
      );
    if (sampling.maxTurns === 1)
      refuse(
        [...at, 'kind'],
        'an episode of one turn has nothing to branch off from: raise sampling.maxTurns, or leave it out',
      );
    if (refills > 0 && collect.roots === 1)
      refuse(
        [...at, 'roots'],
        'algorithm.maxRefills compares the roots of a task, and one root has no contrast: give 2 or more, or set maxRefills to 0',
      );
    const compares = rules.find(isOfGroup);
    if (compares)
      refuse(
        at,
        `the samples of a tree come in rounds and begin alike, and the rule ${compares.kind} of the reward compares those of a task: leave one of them out`,
      );
    if ((verification?.offerLateFor ?? 0) > 0)
      refuse(
        at,
        'late verdicts are corrected within one group, and a tree has several: set verification.offerLateFor to 0, or leave out collect',
      );
    return;
  }
  if (collect.kind === 'asynchronous') {
    const { maxStaleness, inFlight } = collect;
    if (groupsPerWorkflow < groupsPerStep && groupsPerStep % groupsPerWorkflow !== 0)
      refuse(
        [...at.slice(0, -1), 'groupsPerWorkflow'],
        `does not divide groupsPerStep, ${groupsPerStep}, and an asynchronous step takes whole workflows: give one that does, 1 say`,
      );
    const workflows = (maxStaleness + 1) * Math.ceil(groupsPerStep / groupsPerWorkflow);
    if (workflows > MOST_BEGUN)
      refuse(
        [...at, 'maxStaleness'],
        `begins up to ${workflows} child workflows before a step takes them, at most ${MOST_BEGUN}: lower it, or raise groupsPerWorkflow`,
      );
    const tasksAhead = (maxStaleness + 1) * groupsPerStep;
    if (tasksAhead > MOST_AHEAD)
      refuse(
        [...at, 'maxStaleness'],
        `has up to ${tasksAhead} tasks in flight, whose names are carried along, at most ${MOST_AHEAD}: lower it, or groupsPerStep`,
      );
    const together = Math.min(groupsPerStep, groupsPerWorkflow);
    if (inFlight !== undefined && inFlight < together)
      refuse(
        [...at, 'inFlight'],
        `a workflow has ${together} tasks, so none could be begun: raise it, or lower groupsPerWorkflow`,
      );
    if (refills > 0)
      refuse(
        [...at.slice(0, -1), 'algorithm', 'maxRefills'],
        'a step of asynchronous rollouts takes groups that are there, and draws none for itself: set it to 0, or choose collect pipelined',
      );
  }
  if (collect.kind === 'pipelined') {
    const workflows = collect.lag * (1 + refills) * Math.ceil(groupsPerStep / groupsPerWorkflow);
    if (workflows > MOST_BEGUN)
      refuse(
        [...at, 'lag'],
        `begins ${workflows} child workflows before their turn, at most ${MOST_BEGUN}: lower it, or raise groupsPerWorkflow`,
      );
    const tasksAhead = collect.lag * (1 + refills) * groupsPerStep;
    if (tasksAhead > MOST_AHEAD)
      refuse(
        [...at, 'lag'],
        `has up to ${tasksAhead} tasks before their turn, whose names are carried along, at most ${MOST_AHEAD}: lower it, or groupsPerStep`,
      );
  }
  if (collect.kind === 'replay' && collect.part > 0) {
    if (replayedPerStep(collect, { groupsPerStep }) === 0)
      refuse(
        [...at, 'part'],
        `replays none of the ${groupsPerStep} groups of a step: raise it, or set it to 0`,
      );
    const { successes } = collect;
    if (successes && successes.from >= successes.to)
      refuse([...at, 'successes', 'from'], `leaves nothing: it must be below to = ${successes.to}`);
    const replayed = replayedPerStep(collect, { groupsPerStep });
    if (successes && replayed > 2 * (groupsPerStep - replayed))
      refuse(
        [...at, 'part'],
        `replays ${replayed} of the ${groupsPerStep} groups of a step, and successes are at most twice as many as are sampled: lower it to 2/3 or less`,
      );
    const buffered = collect.maxStaleness * groupsPerStep * (1 + refills);
    if (buffered > MOST_BUFFERED)
      refuse(
        [...at, 'maxStaleness'],
        `keeps up to ${buffered} groups, which are carried along, at most ${MOST_BUFFERED}: lower it, or groupsPerStep`,
      );
    const objects = collect.maxStaleness * (1 + refills) * Math.ceil(groupsPerStep / groupsPerWorkflow);
    if (objects > MOST_OBJECTS)
      refuse(
        [...at, 'maxStaleness'],
        `keeps what ${objects} child workflows have left, at most ${MOST_OBJECTS}: lower it, or raise groupsPerWorkflow`,
      );
  }
  if (collect.kind !== 'stored') return;
  if (verification) refuse(at, 'stored episodes are not escalated: leave it out, or leave out verification');
  checkStoredEpisodes(collect, tasks, earlier, at, refuse);
  const source =
    collect.run === undefined
      ? earlier.find(({ kind, name }) => kind === 'rl' && name === collect.stage)
      : undefined;
  const tooMany = refuseStoredTasks(groupsPerStep, source?.numGenerations);
  if (tooMany !== null) refuse([...at.slice(0, -1), 'groupsPerStep'], tooMany);
}

/** Episodes of an earlier stage, or of another run: there must be some of these tasks. */
export function checkStoredEpisodes(
  { run, stage, steps }: Pick<Extract<CollectSpec, { kind: 'stored' }>, 'run' | 'stage' | 'steps'>,
  tasks: WrittenTasks,
  earlier: readonly EarlierStage[],
  at: Path,
  refuse: Refuse,
): void {
  if (steps?.to !== undefined && steps.to < steps.from)
    refuse([...at, 'steps', 'to'], `is before from = ${steps.from}`);
  if (run !== undefined) return;
  const sources = earlier.filter(({ kind }) => kind === 'rl');
  const names = sources.map((one) => one.name);
  if (!names.includes(stage))
    refuse(
      [...at, 'stage'],
      `"${stage}" is no earlier stage with episodes${didYouMean(stage, names)}; one of another run needs its run`,
    );
  const source = sources.find((one) => one.name === stage);
  if (!source) return;
  const { maxSteps = Infinity } = source;
  if ((steps?.from ?? 1) > maxSteps)
    refuse([...at, 'steps', 'from'], `is after the last of the ${maxSteps} steps of ${stage}`);
  const there = new Set(armsOf(source.tasks).map(armName));
  if (!armsOf(tasks).some((arm) => there.has(armName(arm))))
    refuse(
      [...at, 'stage'],
      `"${stage}" rolls out none of the tasks of this stage, but ${[...there].join(', ')}: name tasks that it has`,
    );
}

/** Tasks of a step that are replayed at most: the others are drawn. */
export const replayedPerStep = (
  { part }: Pick<ReplayCollect, 'part'>,
  { groupsPerStep }: { groupsPerStep: number },
): number => Math.floor(part * groupsPerStep + 1e-9);

/** Whether the spec insists on a loss without a clip, however old samples are. */
export const insistsOnUnclipped = (collect: CollectSpec): boolean =>
  'allowUnclipped' in collect && collect.allowUnclipped === true;
