import { z } from 'zod';
import type { Refuse, SpecEnvironments } from '../../check.ts';
import { count, fraction } from '../../../core/fields.ts';
import { optimizerSchema } from '../optimizer.ts';
import { armsOf, checkCount, checkTasks, MEASURED, MOST_TASKS, tasksSchema } from '../tasks.ts';
import type { Arm } from '../tasks.ts';

/** Of a round, which is one batch. */
const MOST_DEMONSTRATIONS = 262_144;

export const warmStartSchema = z
  .strictObject({
    tasks: tasksSchema,
    minibatch: count(8192, 'raise updatesPerRound instead')
      .default(64)
      .describe('Demonstrations per optimizer update.'),
    updatesPerRound: count(10_000, 'raise maxRounds instead').default(50),
    maxRounds: count(10_000, 'a warm start that needs more does not learn').default(60),
    optimizer: optimizerSchema(1e-3),
    graduation: z.strictObject({
      successAtLeast: fraction.describe('Held-out success that every level must reach before RL begins.'),
      tasksPerLevel: count(MOST_TASKS, MEASURED).default(64),
    }),
  })
  .describe('Supervised rounds on generated demonstrations until every level succeeds now and then.');

type WrittenWarmStart = z.output<typeof warmStartSchema>;

export type WarmStartSpec = Omit<WrittenWarmStart, 'tasks' | 'graduation'> & {
  arms: Arm[];
  graduation: {
    /** Success on held-out tasks that *every* arm must reach: what is never sampled is never reinforced. */
    successAtLeast: number;
    /** Held-out tasks per arm. */
    tasksPerArm: number;
  };
};

export const warmStartOf = ({
  tasks,
  graduation: { successAtLeast, tasksPerLevel },
  ...warmStart
}: WrittenWarmStart): WarmStartSpec => ({
  ...warmStart,
  arms: armsOf(tasks),
  graduation: { successAtLeast, tasksPerArm: tasksPerLevel },
});

export function checkWarmStart(
  { tasks, minibatch, updatesPerRound, graduation }: WrittenWarmStart,
  environments: SpecEnvironments,
  refuse: Refuse,
): void {
  checkTasks(tasks, ['warmStart', 'tasks'], environments, refuse);
  const path = ['warmStart', 'graduation', 'tasksPerLevel'];
  const measured = graduation.tasksPerLevel * armsOf(tasks).length;
  checkCount({ tasks, split: 'heldout', count: measured }, path, environments, refuse);
  if (measured > MOST_TASKS) {
    refuse(path, `makes ${measured} tasks a measurement, at most ${MOST_TASKS}: lower it`);
  }
  const demonstrations = updatesPerRound * minibatch;
  if (demonstrations > MOST_DEMONSTRATIONS) {
    refuse(
      ['warmStart', 'updatesPerRound'],
      `makes ${demonstrations} demonstrations a round with ${minibatch} an update, at most ${MOST_DEMONSTRATIONS}: lower it and raise maxRounds`,
    );
  }
}
