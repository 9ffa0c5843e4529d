import { z } from 'zod';
import type { Refuse, SpecEnvironments } from '../check.ts';
import { count } from '../../core/fields.ts';
import { armsOf, checkCount, checkTasks, MEASURED, MOST_TASKS, tasksSchema } from './tasks.ts';
import type { Arm } from './tasks.ts';

export const evaluationSchema = z.strictObject({
  tasks: tasksSchema,
  count: count(MOST_TASKS, MEASURED).default(1000),
  confidence: z.number().min(0.5).max(0.9999).default(0.95).describe('Two-sided, of the printed intervals.'),
});

type WrittenEvaluation = z.output<typeof evaluationSchema>;

/** The report before → after, on tasks that no decision of the run has seen. */
export interface FinalEvaluationSpec {
  arms: Arm[];
  tasks: number;
  confidence: number;
}

export const evaluationOf = ({ tasks, count, confidence }: WrittenEvaluation): FinalEvaluationSpec => ({
  arms: armsOf(tasks),
  tasks: count,
  confidence,
});

export function checkEvaluation(
  { tasks, count }: WrittenEvaluation,
  environments: SpecEnvironments,
  refuse: Refuse,
): void {
  checkTasks(tasks, ['evaluation', 'tasks'], environments, refuse);
  checkCount({ tasks, split: 'test', count }, ['evaluation', 'count'], environments, refuse);
}
