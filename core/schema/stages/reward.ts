import { z } from 'zod';
import { count, fraction, givenName, name, runName } from '../../fields.ts';
import { didYouMean } from '../../did-you-mean.ts';
import type { Refuse, SpecEnvironments } from '../check.ts';
import { checkStoredEpisodes, storedStepsSchema } from '../collect.ts';
import type { EarlierStage } from '../collect.ts';
import type { WrittenReward } from '../reward.ts';
import { LADDER } from '../../ladder/requests.ts';
import { fromSchema } from './earlier-policy.ts';
import { supervisedOptimizerSchema } from '../optimizer.ts';
import type { OptimizerSpec } from '../optimizer.ts';
import type { Path } from '../strict.ts';
import { armsOf, checkTasks, tasksSchema } from '../tasks.ts';
import type { WithArms } from '../tasks.ts';

/** They are in one object, and a batch has most of them. */
const MOST_EPISODES = 16_384;

export const rewardStageSchema = z
  .strictObject({
    kind: z.literal('reward').describe('A reward model of stored episodes with verdicts.'),
    name: name.describe('Unique in the run.'),
    from: fromSchema,
    tasks: tasksSchema,
    episodes: z
      .strictObject({
        stage: name.describe('The stage whose rollouts they are.'),
        run: runName
          .optional()
          .describe('The run that has it, of the same reward and tokens. Default: this one.'),
        steps: storedStepsSchema,
      })
      .describe('What it learns from: whole groups as they were judged.'),
    labels: z
      .enum(['outcomes', 'pairs', 'steps'])
      .default('outcomes')
      .describe(
        'outcomes: cross-entropy of the deciding verifier’s score, at the end of every turn. pairs: Bradley-Terry of two samples of a task whose scores differ, at their ends. steps: cross-entropy of each turn’s own score by a verifier that judges steps.',
      ),
    stepsOf: givenName.optional().describe('With labels steps: the component whose verifier judges steps.'),
    pairsPerTask: count(64, 'they would say the same again')
      .optional()
      .describe('With labels pairs: of each task at most. Default 4.'),
    models: count(8, 'each is scored for every episode')
      .default(1)
      .describe(
        'Models of an ensemble. One alone learns from all tasks; of several, each draws its tasks with replacement.',
      ),
    maxEpisodes: count(MOST_EPISODES, 'they are one object')
      .default(4096)
      .describe('Episodes at most, by whole tasks, drawn by the seed.'),
    heldOut: z
      .number()
      .min(0.05)
      .max(0.5)
      .default(0.2)
      .describe('Part of the tasks that it is measured on and does not learn from.'),
    minibatch: count(8192, 'raise maxRounds instead')
      .default(64)
      .describe('Episodes per optimizer update; a pair is two.'),
    maxRounds: count(100, 'it would know its episodes by heart')
      .default(4)
      .describe(
        'Rounds, each an epoch of every model, after which a person is asked where the goal is not reached.',
      ),
    optimizer: supervisedOptimizerSchema,
    graduation: z
      .strictObject({
        aucAtLeast: fraction.describe(
          'Probability that a held-out success is given more than a failure (area under the ROC curve).',
        ),
        calibrationErrorAtMost: fraction
          .default(1)
          .describe(
            'Mean distance of held-out probability and frequency, in ten bins; of graded scores, of what is predicted and their mean.',
          ),
      })
      .describe('The goal of the stage, measured after each round.'),
  })
  .describe('Trains a model of the reward, which later stages may be judged by (reward.model).');

type WrittenRewardStage = z.output<typeof rewardStageSchema>;

export interface RewardStageSpec extends WithArms<WrittenRewardStage> {
  optimizer: OptimizerSpec;
  pairsPerTask: number;
}

const LEARNING_RATE = 1e-3;

export const rewardStageOf = ({ tasks, ...stage }: WrittenRewardStage): RewardStageSpec => ({
  ...stage,
  optimizer: { ...stage.optimizer, learningRate: stage.optimizer.learningRate ?? LEARNING_RATE },
  pairsPerTask: stage.pairsPerTask ?? 4,
  arms: armsOf(tasks),
});

/** `at` is the path of the stage. */
export function checkRewardStage(
  stage: WrittenRewardStage,
  { components, ensembles = [] }: Pick<WrittenReward, 'components' | 'ensembles'>,
  earlier: readonly EarlierStage[],
  at: Path,
  environments: SpecEnvironments,
  refuse: Refuse,
): void {
  checkTasks(stage.tasks, [...at, 'tasks'], environments, refuse);
  const { episodes, labels, stepsOf, pairsPerTask, minibatch } = stage;
  checkStoredEpisodes(episodes, stage.tasks, earlier, [...at, 'episodes'], refuse);
  if (labels === 'steps' && stepsOf === undefined)
    refuse([...at, 'stepsOf'], 'is missing: name the component whose verifier judges steps');
  if (labels !== 'steps' && stepsOf !== undefined)
    refuse([...at, 'stepsOf'], `does nothing with labels ${labels}; steps reads it`);
  const several = [LADDER, ...ensembles.map((one) => one.name)];
  const verifiers = components.flatMap(({ verifier }) => (several.includes(verifier) ? [] : verifier));
  if (labels === 'steps' && stepsOf !== undefined && !verifiers.includes(stepsOf))
    refuse(
      [...at, 'stepsOf'],
      `"${stepsOf}" is no component of one verifier${didYouMean(stepsOf, verifiers)}`,
    );
  if (labels !== 'pairs' && pairsPerTask !== undefined)
    refuse([...at, 'pairsPerTask'], `does nothing with labels ${labels}; pairs reads it`);
  if (labels === 'pairs' && minibatch < 2)
    refuse([...at, 'minibatch'], 'has no room for a pair, which is two episodes');
}
