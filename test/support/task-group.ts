import type { Sample } from '../../core/algorithms/sample.ts';
import type { TaskGroup } from '../../core/algorithms/task-group.ts';

/** Samples of some task, as a method is given them. */
export const taskGroup = (
  samples: readonly Sample[],
  { environment = 'toy', ...more }: { environment?: string; hindsight?: boolean; greedy?: number } = {},
): TaskGroup => ({
  ref: { environment, split: 'train', level: 1, index: 0 },
  promptTokens: [],
  hindsight: false,
  weights: 'w',
  samples,
  ...more,
});
