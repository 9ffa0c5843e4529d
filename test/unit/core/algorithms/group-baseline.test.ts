import { expect, it } from 'vitest';
import { mostDeviating } from '../../../../core/algorithms/group-baseline.ts';
import type { CreditGroup, Sample } from '../../../../core/algorithms/method.ts';

const sample = (reward: number): Sample => ({
  reward,
  success: null,
  tokens: [],
  mask: [],
  turns: [],
  before: [],
  rollout: [],
  scores: {},
  truncated: false,
});

it('keeps the whole number of groups that a share is, though doubles make it a hair less', () => {
  const groups = (count: number): CreditGroup[] =>
    Array.from({ length: count }, (_, i) => ({
      environment: 'calculator',
      samples: [sample(0), sample(i + 1)],
      greedy: null,
    }));
  expect(mostDeviating(groups(50), 0.58).size).toBe(29);
  expect(mostDeviating(groups(100), 0.29).size).toBe(29);
  expect(mostDeviating(groups(3), 0.5).size).toBe(1);
  expect(mostDeviating(groups(3), 0.1).size).toBe(1);
});
