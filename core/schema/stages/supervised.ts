import { z } from 'zod';
import type { Refuse, SpecEnvironments } from '../check.ts';
import { count, fraction, name } from '../../fields.ts';
import type { Path } from '../strict.ts';
import { armName } from '../../names.ts';
import { optimizerSchema } from '../optimizer.ts';
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
    tasks: tasksSchema,
    minibatch: count(8192, 'raise updatesPerRound instead')
      .default(64)
      .describe('Demonstrations per optimizer update.'),
    updatesPerRound: count(10_000, 'raise maxRounds instead')
      .default(50)
      .describe('Optimizer updates per round; each round has fresh demonstrations.'),
    maxRounds: count(10_000, 'a stage that needs more does not learn')
      .default(60)
      .describe('Rounds after which a person is asked where the goal is not reached.'),
    optimizer: optimizerSchema(1e-3),
    graduation: z
      .strictObject({
        successAtLeast: fraction.describe(
          'Held-out success that every level must reach: RL cannot reinforce what is never sampled.',
        ),
        tasksPerLevel: count(MOST_TASKS, MEASURED).default(64).describe(`Held-out tasks per level. ${FEWER}`),
        unjudgedAtMost: unjudgedSchema,
      })
      .describe('The goal of the stage.'),
  })
  .describe(
    'Supervised rounds on generated demonstrations until every level succeeds now and then: a warm start.',
  );

type WrittenSupervisedStage = z.output<typeof supervisedStageSchema>;

export type SupervisedStageSpec = WithArms<WrittenSupervisedStage>;

export const supervisedStageOf = ({ tasks, ...stage }: WrittenSupervisedStage): SupervisedStageSpec => ({
  ...stage,
  arms: armsOf(tasks),
});

/** `at` is the path of the stage. */
export function checkSupervisedStage(
  { tasks, minibatch, updatesPerRound, graduation }: WrittenSupervisedStage,
  { maxTurns }: Pick<SamplingSpec, 'maxTurns'>,
  at: Path,
  environments: SpecEnvironments,
  refuse: Refuse,
): void {
  checkTasks(tasks, [...at, 'tasks'], environments, refuse);
  tasks.forEach(({ environment }, i) => {
    if (environments.get(environment)?.demonstrates === false)
      refuse(
        [...at, 'tasks', i, 'environment'],
        `"${environment}" has no expert to imitate (demonstrate()). Begin with an imported model (model.from), or with another run's episodes (an rl stage that collects stored ones, by rft say). Or begin with levels that a fresh model sometimes solves`,
      );
  });
  for (const { environment, level } of armsOf(tasks)) {
    const turns = environments.get(environment)?.turnsOfDemonstrations?.get(level) ?? 0;
    if (turns > maxTurns)
      refuse(
        ['sampling', 'maxTurns'],
        `${maxTurns} turns leave no room for the demonstrations of ${armName({ environment, level })}, the shortest of which takes ${turns}: write "maxTurns": ${turns} or more`,
      );
  }
  const path = [...at, 'graduation', 'tasksPerLevel'];
  const { tasksPerLevel } = graduation;
  checkCount({ tasks, split: 'heldout', count: tasksPerLevel, of: 'each' }, path, environments, refuse);
  const measured = tasksPerLevel * armsOf(tasks).length;
  if (measured > MOST_TASKS) {
    refuse(path, `makes ${measured} tasks a measurement, at most ${MOST_TASKS}: lower it`);
  }
  const demonstrations = updatesPerRound * minibatch;
  if (demonstrations > MOST_DEMONSTRATIONS) {
    refuse(
      [...at, 'updatesPerRound'],
      `makes ${demonstrations} demonstrations a round with ${minibatch} an update, at most ${MOST_DEMONSTRATIONS}: lower it and raise maxRounds`,
    );
  }
}
