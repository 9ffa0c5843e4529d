import { z } from 'zod';
import {
  preferenceLearningRate,
  preferenceObjective,
  preferenceSchema,
  refusePreference,
} from '../../algorithms/preference.ts';
import type { DpoObjective, KtoObjective } from '../../algorithms/objective.ts';
import type { BlobRef } from '../../refs.ts';
import type { Refuse, SpecEnvironments } from '../check.ts';
import { count, fraction, name } from '../../fields.ts';
import type { Path } from '../strict.ts';
import { armName } from '../../names.ts';
import { fromSchema } from './earlier-policy.ts';
import { checkSynthesis, synthesisSchema } from './synthesis.ts';
import { supervisedOptimizerSchema } from '../optimizer.ts';
import type { OptimizerSpec } from '../optimizer.ts';
import type { SamplingSpec } from '../sampling.ts';
import {
  armsOf,
  checkCount,
  checkTasks,
  FEWER,
  MEASURED,
  MOST_TASKS,
  tasksSchema,
  unjudgedSchema,
} from '../tasks.ts';
import type { WithArms } from '../tasks.ts';

/** Of a round, which is one batch. */
const MOST_DEMONSTRATIONS = 262_144;

export const supervisedStageSchema = z
  .strictObject({
    kind: z.literal('supervised').describe('Supervised fine-tuning on demonstrations.'),
    name: name.describe('Unique in the run.'),
    from: fromSchema,
    tasks: tasksSchema,
    data: z
      .string()
      .min(1)
      .max(1000, 'has at most 1000 characters')
      .optional()
      .describe(
        'Imitate this data and no expert: a JSONL file that the worker can read, or s3:// and a key of the bucket. Held-out success is measured on the tasks all the same.',
      ),
    synthesis: synthesisSchema,
    algorithm: preferenceSchema
      .optional()
      .describe(
        'Learn preferences from the data in the place of imitating it, held to the model that the stage begins with: pairs by dpo, what is labelled good or bad by kto.',
      ),
    minibatch: count(8192, 'raise updatesPerRound instead')
      .default(64)
      .describe('Demonstrations per optimizer update; pairs for dpo.'),
    updatesPerRound: count(10_000, 'raise maxRounds instead')
      .default(50)
      .describe('Optimizer updates per round; each round has fresh demonstrations.'),
    maxRounds: count(10_000, 'a stage that needs more does not learn')
      .default(60)
      .describe('Rounds after which a person is asked where the goal is not reached.'),
    optimizer: supervisedOptimizerSchema,
    graduation: z
      .strictObject({
        successAtLeast: fraction.describe(
          'Held-out success that every level must reach: RL cannot reinforce what is never sampled.',
        ),
        tasksPerLevel: count(MOST_TASKS, MEASURED).default(64).describe(`Held-out tasks per level. ${FEWER}`),
        unjudgedAtMost: unjudgedSchema,
        enough: z
          .strictObject({
            lossFallBelow: fraction
              .default(0.02)
              .describe(
                'The mean loss has to fall by less than this part of itself from the first half of the latest rounds to the second.',
              ),
            rounds: count(200, 'each of them is carried from round to round', 2)
              .default(4)
              .describe('The latest rounds.'),
            formatAtLeast: fraction
              .default(0.9)
              .describe(
                'Share of held-out samples that have to come to an end with every turn a call or an answer.',
              ),
            distinctAtLeast: fraction
              .default(0.2)
              .describe(
                'Of the held-out samples beyond the first of each task, the share that has to differ from all before.',
              ),
            samples: count(64, 'a few show whether they differ', 2)
              .default(4)
              .describe('Samples of each held-out task.'),
          })
          .optional()
          .describe(
            'Asks for more than success: that the loss no longer falls, the format is right, and answers still differ. With successAtLeast 0 these three decide alone.',
          ),
      })
      .describe('The goal of the stage.'),
  })
  .describe(
    'Supervised rounds on generated demonstrations until every level succeeds now and then: a warm start.',
  );

type WrittenSupervisedStage = z.output<typeof supervisedStageSchema>;

export interface SupervisedStageSpec extends WithArms<WrittenSupervisedStage> {
  optimizer: OptimizerSpec;
  /** The copy of `data` that was checked when the run began. */
  given?: BlobRef;
  /** What the algorithm minimizes; absent: examples are imitated. */
  objective?: DpoObjective | KtoObjective;
}

const LEARNING_RATE = 1e-3;

export const supervisedStageOf = ({ tasks, ...stage }: WrittenSupervisedStage): SupervisedStageSpec => {
  const { algorithm, optimizer } = stage;
  const usual = algorithm ? preferenceLearningRate(algorithm) : LEARNING_RATE;
  return {
    ...stage,
    optimizer: { ...optimizer, learningRate: optimizer.learningRate ?? usual },
    ...(algorithm && { objective: preferenceObjective(algorithm) }),
    arms: armsOf(tasks),
  };
};

/** `at` is the path of the stage. */
export function checkSupervisedStage(
  stage: WrittenSupervisedStage,
  { maxTurns }: Pick<SamplingSpec, 'maxTurns'>,
  at: Path,
  environments: SpecEnvironments,
  refuse: Refuse,
): void {
  const { tasks, data, algorithm, synthesis, minibatch, updatesPerRound, graduation } = stage;
  checkTasks(tasks, [...at, 'tasks'], environments, refuse);
  checkSynthesis(stage, at, environments, refuse);
  tasks.forEach(({ environment }, i) => {
    if (data === undefined && !synthesis && environments.get(environment)?.demonstrates === false)
      refuse(
        [...at, 'tasks', i, 'environment'],
        `"${environment}" has no expert to imitate (demonstrate()). Begin with an imported model (model.from), or with another run's episodes (an rl stage that collects stored ones, by rft say). Or begin with levels that a fresh model sometimes solves`,
      );
  });
  for (const { environment, level } of armsOf(tasks)) {
    const turns = environments.get(environment)?.turnsOfDemonstrations?.get(level) ?? 0;
    if (data === undefined && turns > maxTurns)
      refuse(
        ['sampling', 'maxTurns'],
        `${maxTurns} turns leave no room for the demonstrations of ${armName({ environment, level })}, the shortest of which takes ${turns}: write "maxTurns": ${turns} or more`,
      );
  }
  if (algorithm && data === undefined && !synthesis)
    refuse(
      [...at, 'algorithm'],
      `${algorithm.kind} learns from preferences, and none are given: name them in "data", or write an rl stage, which prefers among its own samples`,
    );
  for (const { field, message } of algorithm ? refusePreference(algorithm) : [])
    refuse([...at, 'algorithm', field], message);
  const path = [...at, 'graduation', 'tasksPerLevel'];
  const { tasksPerLevel } = graduation;
  checkCount({ tasks, split: 'heldout', count: tasksPerLevel, of: 'each' }, path, environments, refuse);
  const { enough } = graduation;
  const measured = tasksPerLevel * armsOf(tasks).length * (enough?.samples ?? 1);
  if (measured > MOST_TASKS) {
    const what = enough ? `samples of ${enough.samples} a task` : 'tasks';
    refuse(path, `makes ${measured} ${what} a measurement, at most ${MOST_TASKS}: lower it`);
  }
  const demonstrations = updatesPerRound * minibatch;
  if (demonstrations > MOST_DEMONSTRATIONS) {
    refuse(
      [...at, 'updatesPerRound'],
      `makes ${demonstrations} demonstrations a round with ${minibatch} an update, at most ${MOST_DEMONSTRATIONS}: lower it and raise maxRounds`,
    );
  }
}
