import { rate, wilson } from './intervals.ts';
import type { Interval, Proportion } from './intervals.ts';

export interface Measured extends Interval {
  success: number;
  successes: number;
  trials: number;
}

/**
 * With `samples` of each task trials are not independent of each other. The interval is that of as many trials as there
 * are tasks, which is the widest that the samples of a task can make it: where they are all alike.
 */
export function measuredShare(proportion: Proportion, confidence: number, samples = 1): Measured {
  const { successes, trials } = proportion;
  const tasks = { successes: successes / samples, trials: trials / samples };
  return { success: rate(proportion), ...wilson(tasks, confidence), ...proportion };
}
