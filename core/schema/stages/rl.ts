import { z } from 'zod';
import { algorithmSchema, learningRateOf, planAlgorithm, refuseAlgorithm } from '../../algorithms/index.ts';
import type { CriticPlan, MethodContext, Plan } from '../../algorithms/method.ts';
import { MOST_EPISODES } from '../../algorithms/surrogate.ts';
import { mostThatCanBeShown } from '../../training/stage-policy.ts';
import { plannedLooks } from '../../training/shared-error.ts';
import type { Refuse, Resume, SpecEnvironments } from '../check.ts';
import { amount, budget, count, fraction, givenName, name, positive } from '../../fields.ts';
import { didYouMean } from '../../did-you-mean.ts';
import type { Path } from '../strict.ts';
import {
  checkCollect,
  collectSchema,
  insistsOnUnclipped,
  lagsBy,
  mostStaleness,
  roundsOf,
} from '../collect.ts';
import type { EarlierStage } from '../collect.ts';
import { explorationSchema } from '../exploration.ts';
import { methodsOptimizerSchema } from '../optimizer.ts';
import type { OptimizerSpec } from '../optimizer.ts';
import { diagnosisSchema, refuseActions } from './diagnosis.ts';
import { fromSchema } from './earlier-policy.ts';
import { checkFromFailures, fromFailuresSchema } from './from-failures.ts';
import { trainedRoles } from '../../training/roles.ts';
import { checkSelfPlay, proposerArms, selfPlaySchema } from './self-play.ts';
import type { ProposerArm, SelfPlaySpec } from './self-play.ts';
import type { RewardRule } from '../reward-rules.ts';
import type { SamplingSpec } from '../sampling.ts';
import {
  armsOf,
  checkCount,
  checkTasks,
  FEWER,
  MEASURED,
  MOST_TASKS,
  mostTasks,
  tasksSchema,
  unjudgedSchema,
} from '../tasks.ts';
import type { WithArms } from '../tasks.ts';
import type { WrittenVerification } from '../verification.ts';

/** Child workflows of one step, which are all in one history. */
const MOST_WORKFLOWS = 1000;
/** Of one child workflow, whose trajectories are one object. */
const MOST_TOGETHER = 16_384;

const confidence = (usual: number, what: string) =>
  z.number().min(0.5).max(0.9999).default(usual).describe(what);

export const rlStageSchema = z
  .strictObject({
    kind: z.literal('rl').default('rl').describe('Reinforcement learning. The default.'),
    name: name.describe('Unique in the run.'),
    from: fromSchema,
    tasks: tasksSchema,
    groupsPerStep: count(MOST_EPISODES / 2, 'take more steps')
      .default(16)
      .describe('Tasks per step.'),
    groupsPerWorkflow: count(512, "the names of a workflow's tasks pass through its history")
      .default(32)
      .describe('Tasks that one child workflow rolls out together; it does not change what is sampled.'),
    numGenerations: count(4096, 'draw more tasks instead', 2).default(16).describe('Samples per task.'),
    maxSteps: count(1e6, 'write another stage').describe('Steps after which the stage ends, at most.'),
    collect: collectSchema,
    exploration: explorationSchema,
    selfPlay: selfPlaySchema,
    fromFailures: fromFailuresSchema,
    algorithm: algorithmSchema.prefault({}).describe('The training method and its options.'),
    optimizer: methodsOptimizerSchema,
    graduation: z
      .strictObject({
        successAtLeast: fraction.describe('Held-out success that must be shown.'),
        confidence: confidence(
          0.9,
          'Probability that none of the evaluations of the stage graduates a policy that is worse.',
        ),
        tasks: count(MOST_TASKS, MEASURED).default(300).describe(`Held-out tasks of an evaluation. ${FEWER}`),
        everySteps: count(1e6, 'the last step is always measured')
          .default(10)
          .describe('Steps from one evaluation to the next.'),
        unjudgedAtMost: unjudgedSchema,
      })
      .describe('When the stage has reached its goal.'),
    plateau: z
      .strictObject({
        evaluations: count(200, 'each of them is carried from step to step', 2)
          .default(8)
          .describe('The latest evaluations: their second half is compared with their first.'),
        minImprovement: fraction
          .default(0.05)
          .describe(
            'The stage is on a plateau when a gain of held-out success of this size can be ruled out.',
          ),
        confidence: confidence(
          0.9,
          'Probability that none of the evaluations of the stage finds a plateau where there is that gain.',
        ),
        action: z
          .enum(['advance', 'stop', 'ask'])
          .default('advance')
          .describe('Go on with the next stage, end the run, or ask a person.'),
      })
      .prefault({})
      .describe('What to do when the stage no longer gets better.'),
    collapse: z
      .strictObject({
        successBelowBest: fraction
          .default(0.7)
          .describe('Part of the best held-out success of the stage; 0 switches this rule off.'),
        confidence: confidence(
          0.95,
          'Probability that none of the evaluations of the stage finds such a fall where there is none.',
        ),
        entropyBelow: amount(20, 'no vocabulary has so much entropy')
          .default(0)
          .describe(
            'Entropy of the policy in nats a token, estimated by what it sampled in the step; 0 switches this rule off.',
          ),
        action: z
          .enum(['rollback', 'stop', 'ask'])
          .default('rollback')
          .describe('Go back to the best checkpoint, end the run, or ask a person.'),
        learningRateFactor: positive(1, 'a roll-back goes on more carefully')
          .default(0.5)
          .describe('The learning rate is multiplied by it at each roll-back.'),
        maxRollbacks: count(1000, 'a person should have been asked', 0)
          .default(2)
          .describe('After these a person is asked.'),
      })
      .prefault({})
      .describe('What to do when the policy has become much worse.'),
    diagnosis: diagnosisSchema
      .prefault({})
      .describe('Actions for each alarm, by its name; see docs/diagnosis.md.'),
    budgets: z
      .record(givenName, budget)
      .optional()
      .describe("By verifier, in place of the tier's own budget."),
    retryFailures: fraction
      .default(0.125)
      .describe("Share of each step's tasks that is drawn from tasks which samples failed recently."),
    mostTries: count(20, 'a task that no sample solves rests for 2, 4, 8, … steps')
      .default(6)
      .describe(
        'Tries after which a task that samples still fail is dropped; one that no sample solves rests before each other try, for 2, 4, 8, … steps.',
      ),
  })
  .describe('Reinforcement learning on groups of samples, until the policy graduates.');

type WrittenRlStage = z.output<typeof rlStageSchema>;

export interface RlStageSpec extends Omit<WithArms<WrittenRlStage>, 'mostTries' | 'selfPlay'> {
  /** With the levels that ask for proposals. */
  selfPlay?: SelfPlaySpec & { arms: ProposerArm[] };
  /** Absent in runs that began before there was such a limit: what was failed is drawn again without rest. */
  mostTries?: number;
  optimizer: OptimizerSpec;
  /** What the algorithm asks for, made of it when the spec is read: workflows know no method. */
  plan: Plan;
}

export type PlateauAction = RlStageSpec['plateau']['action'];
export type CollapseAction = RlStageSpec['collapse']['action'];

export const rlStageOf = (
  { tasks, selfPlay, ...stage }: WrittenRlStage,
  sampling: SamplingSpec,
  environments: SpecEnvironments,
): RlStageSpec => ({
  ...stage,
  ...(selfPlay && { selfPlay: { ...selfPlay, arms: proposerArms(armsOf(tasks), environments) } }),
  optimizer: {
    ...stage.optimizer,
    learningRate: stage.optimizer.learningRate ?? learningRateOf(stage.algorithm),
  },
  plan: planAlgorithm(stage.algorithm, sampling),
  arms: armsOf(tasks),
});

/** Whether it learns from proposals that are alone in their groups; a task has two samples or more. */
const trainsSingles = ({ selfPlay }: WrittenRlStage): boolean =>
  selfPlay?.samples === 1 && trainedRoles(selfPlay).proposer;

/** `at` is the path of the stage, after the `earlier` ones. */
export function checkRlStage(
  stage: WrittenRlStage,
  verification: WrittenVerification | undefined,
  {
    sampling,
    rules,
    elsewhere,
    ...context
  }: Pick<MethodContext, 'lora' | 'turnRewards' | 'branches' | 'beginsWith'> & {
    sampling: SamplingSpec;
    rules: readonly Pick<RewardRule, 'kind'>[];
    /** A server, or a store of turns, samples for rollout workers. */
    elsewhere: boolean;
  },
  earlier: readonly EarlierStage[],
  at: Path,
  environments: SpecEnvironments,
  refuse: Refuse,
): void {
  checkTasks(stage.tasks, [...at, 'tasks'], environments, refuse);
  const plan = planAlgorithm(stage.algorithm, sampling);
  const late = (verification?.offerLateFor ?? 0) > 0;
  const stored = stage.collect.kind === 'stored';
  const asynchronous = stage.collect.kind === 'asynchronous';
  const replay = stage.collect.kind === 'replay' && stage.collect.part > 0 ? stage.collect : null;
  if (!stored) checkStepSize(stage, plan, at, refuse);
  if (stage.exploration && stored)
    refuse([...at, 'exploration'], 'does nothing where no task is sampled: leave it out');
  const schedule = stage.exploration?.temperature;
  if (schedule && schedule.from === schedule.to)
    refuse(
      [...at, 'exploration', 'temperature', 'to'],
      schedule.to === sampling.temperature
        ? 'is the same as from and as sampling.temperature: leave the schedule out'
        : 'is the same as from, so nothing changes over the steps: give another one, or set sampling.temperature',
    );
  const { critic } = stage.algorithm as { critic?: CriticPlan };
  if (critic && critic.pretrainingSteps >= stage.maxSteps) {
    refuse(
      [...at, 'algorithm', 'critic', 'pretrainingSteps'],
      `${critic.pretrainingSteps} of ${stage.maxSteps} steps train the critic alone, so the policy would never be updated: lower it, or raise maxSteps`,
    );
  }
  if (stage.collect.kind === 'tree') {
    stage.tasks.forEach(({ environment }, i) => {
      const resume = environments.get(environment)?.resume ?? null;
      if (resume === null || branches(resume)) return;
      refuse(
        [...at, 'tasks', i, 'environment'],
        `the sessions of "${environment}" come back by ${resume}, so two samples cannot share a beginning: use another collect than tree`,
      );
    });
  }
  const { refills } = plan;
  checkSelfPlay(
    stage,
    earlier,
    {
      elsewhere,
      verification: verification !== undefined,
      refills,
      greedy: plan.greedy,
      hindsight: plan.hindsight !== null,
      perTask: plan.contrast === undefined,
    },
    at,
    environments,
    refuse,
  );
  checkFromFailures(stage, earlier, at, environments, refuse);
  checkCollect(stage, { verification, sampling, rules, refills }, earlier, [...at, 'collect'], refuse);
  for (const { field, message } of refuseAlgorithm(
    stage.algorithm,
    {
      ...context,
      maxCompletionTokens: sampling.maxCompletionTokens,
      late,
      relabels: stage.tasks.some(({ environment }) => environments.get(environment)?.relabels === true),
      stored,
      lags: lagsBy(stage.collect),
      maxStaleness: mostStaleness(stage.collect),
      replays: replay !== null,
      allowUnclipped: insistsOnUnclipped(stage.collect),
      tree: stage.collect.kind === 'tree',
      environments: [...new Set(stage.tasks.map(({ environment }) => environment))],
    },
    plan.objective,
  ))
    refuse([...at, 'algorithm', field], message);
  const kinds = { late, singles: trainsSingles(stage), asynchronous, replays: replay !== null, stored };
  refuseActions(stage.diagnosis, kinds, [...at, 'diagnosis'], refuse);
  if (asynchronous) {
    if (schedule)
      refuse(
        [...at, 'exploration', 'temperature'],
        'changes by the step, and an asynchronous step takes groups of several: leave it out, or choose collect pipelined',
      );
    if (plan.hindsight?.relabel)
      refuse(
        [...at, 'algorithm', 'relabel'],
        'looks at all groups of a step together, and an asynchronous step has those that are there: set it to false, or choose collect pipelined',
      );
  }
  if (replay) {
    if (schedule)
      refuse(
        [...at, 'exploration', 'temperature'],
        'changes by the step, and groups of earlier steps are replayed: leave it out, or set collect.part to 0',
      );
    if (late)
      refuse(
        [...at, 'collect', 'kind'],
        'late verdicts correct one update by a group, and a group that is replayed has had two: set verification.offerLateFor to 0, or leave out collect',
      );
    if (context.branches && replay.minEffectiveSamples > 0)
      refuse(
        [...at, 'collect', 'minEffectiveSamples'],
        'scores tokens, and branches of an episode are not scored: set it to 0, or agent.branches to fail',
      );
    if (context.branches && replay.successes)
      refuse(
        [...at, 'collect', 'successes'],
        'scores tokens, and branches of an episode are not scored: leave it out, or set agent.branches to fail',
      );
  }
  const tiers = verification?.rungs.map(({ verifier }) => verifier) ?? [];
  for (const verifier of Object.keys(stage.budgets ?? {})) {
    if (!tiers.includes(verifier))
      refuse([...at, 'budgets', verifier], `no tier has this verifier${didYouMean(verifier, tiers)}`);
  }
  const { tasks, confidence, successAtLeast } = stage.graduation;
  const looks = plannedLooks(stage);
  const measured = stage.selfPlay?.solver
    ? proposerArms(armsOf(stage.tasks), environments).map(({ environment, asks }) => ({
        environment,
        levels: [asks],
      }))
    : stage.tasks;
  const most = mostTasks({ tasks: measured, split: 'heldout', of: 'all' }, environments);
  const reachable = mostThatCanBeShown(stage, 1 / looks);
  if (reachable < successAtLeast) {
    refuse(
      [...at, 'graduation', 'successAtLeast'],
      `${tasks} tasks at ${confidence} confidence in ${looks} evaluations show at most ${reachable.toFixed(4)}: ${tasks < most ? 'raise graduation.tasks' : 'let the environment have more held-out tasks'}, measure less often, or lower this`,
    );
  }
  const arms = armsOf(stage.tasks).length;
  const path = [...at, 'graduation', 'tasks'];
  if (tasks < arms) refuse(path, `fewer tasks than the ${arms} levels they are spread over`);
  checkCount({ tasks: measured, split: 'heldout', count: tasks, of: 'all' }, path, environments, refuse);
}

function checkStepSize(
  { groupsPerStep, groupsPerWorkflow, numGenerations, collect }: WrittenRlStage,
  plan: Pick<Plan, 'refills' | 'greedy' | 'hindsight'>,
  at: Path,
  refuse: Refuse,
): void {
  // Refills draw as many tasks again, at most; a greedy sample is one more of each.
  const { refills, greedy, hindsight } = plan;
  const rounds = 1 + refills;
  const samples = numGenerations + Number(greedy) + (hindsight?.corrections ?? 0);
  const refilled = refills === 0 ? '' : ` and ${refills} refills`;
  const episodes = rounds * groupsPerStep * samples;
  if (episodes > MOST_EPISODES) {
    refuse(
      [...at, 'groupsPerStep'],
      `makes ${episodes} episodes a step with ${samples} samples each${refilled}, at most ${MOST_EPISODES}: lower it and take more steps`,
    );
  }
  const grown = roundsOf(collect, numGenerations);
  const workflows =
    rounds *
    (1 + grown + Number(greedy || hindsight !== null)) *
    Math.ceil(groupsPerStep / groupsPerWorkflow);
  if (workflows > MOST_WORKFLOWS) {
    refuse(
      [...at, 'groupsPerWorkflow'],
      `makes ${workflows} child workflows of the ${groupsPerStep} tasks of a step${refilled}${grown === 0 ? '' : ` and ${grown} rounds of a tree`}, at most ${MOST_WORKFLOWS}: raise it`,
    );
  }
  const together = Math.min(groupsPerStep, groupsPerWorkflow) * numGenerations;
  if (together > MOST_TOGETHER) {
    refuse(
      [...at, 'groupsPerWorkflow'],
      `makes ${together} episodes a child workflow, at most ${MOST_TOGETHER}: lower it`,
    );
  }
}

/** Whether the same beginning can be had by several episodes. */
const branches = (resume: Resume): boolean => resume !== 'pin' && resume !== 'reattach';
