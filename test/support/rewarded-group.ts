import type { TaskGroup } from '../../core/algorithms/task-group.ts';

/** Samples of one token each of a task at that level; null: one without a reward. */
export const rewardedGroup = (level: number, ...rewards: (number | null)[]): TaskGroup => ({
  ref: { environment: 'programs', split: 'train', level, index: 0 },
  promptTokens: [1],
  hindsight: false,
  weights: 'w',
  samples: rewards.map((reward) => ({
    reward,
    success: null,
    tokens: [2],
    samplerLogprobs: [-1],
    mask: [1],
    turns: [],
    before: [],
    scores: {},
    truncated: false,
  })),
});
