import { z } from 'zod';
import type { Refuse, SpecEnvironments } from './check.ts';
import { count } from '../fields.ts';
import { armsOf, checkCount, checkTasks, FEWER, MEASURED, MOST_TASKS, tasksSchema } from './tasks.ts';
import type { WithArms } from './tasks.ts';

/** Of each task; all of a task are in one group. */
const MOST_SAMPLES = 128;

export const evaluationSchema = z
  .strictObject({
    tasks: tasksSchema,
    count: count(MOST_TASKS, MEASURED).default(1000).describe(`Test tasks. ${FEWER}`),
    samples: count(MOST_SAMPLES, 'take more tasks')
      .default(1)
      .describe(
        'Samples of each task; with several the report has pass@k, pass^k and the value of further attempts.',
      ),
    confidence: z
      .number()
      .min(0.5)
      .max(0.9999)
      .default(0.95)
      .describe('Two-sided, of the printed intervals.'),
  })
  .describe('The evaluation before and after the run, on test tasks that no decision has used.');

type WrittenEvaluation = z.output<typeof evaluationSchema>;

/** The report before → after, on tasks that no decision of the run has seen. */
export type FinalEvaluationSpec = WithArms<WrittenEvaluation>;

export const evaluationOf = ({ tasks, ...evaluation }: WrittenEvaluation): FinalEvaluationSpec => ({
  ...evaluation,
  arms: armsOf(tasks),
});

export function checkEvaluation(
  { tasks, count, samples }: WrittenEvaluation,
  environments: SpecEnvironments,
  refuse: Refuse,
): void {
  checkTasks(tasks, ['evaluation', 'tasks'], environments, refuse);
  checkCount({ tasks, split: 'test', count, of: 'all' }, ['evaluation', 'count'], environments, refuse);
  if (count * samples > MOST_TASKS) {
    refuse(
      ['evaluation', 'samples'],
      `makes ${count * samples} episodes of ${count} tasks, at most ${MOST_TASKS}: lower it or evaluation.count`,
    );
  }
}
