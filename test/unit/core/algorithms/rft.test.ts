import { expect, test } from 'vitest';
import { algorithmSchema, computeAdvantages } from '../../../../core/algorithms/index.ts';
import type { Sample } from '../../../../core/algorithms/sample.ts';
import { taskGroup } from '../../../support/task-group.ts';

const sample = (tokens: number[], success: boolean): Sample => ({
  reward: Number(success),
  success,
  tokens,
  mask: tokens.map(() => 1),
  turns: [{ start: 0, end: tokens.length, reward: 0, state: 'prompt' }],
  before: [],
  samplerLogprobs: tokens.map(() => -1),
  scores: {},
  truncated: false,
});
const samples = [
  sample([1, 2], true),
  sample([1, 2], true),
  sample([3], false),
  sample([3], false),
  sample([12], true),
  sample([4], true),
];
const learnt = (over: object) =>
  computeAdvantages(algorithmSchema.parse({ kind: 'rft', ...over }), [taskGroup(samples)]).map(
    ({ sample: place, advantages }) => [place, advantages[0]],
  );

test('the same path of a task is imitated once, and does not take the place of another one', () => {
  expect(learnt({ mostPerTask: 2 })).toEqual([
    [0, 1],
    [4, 1],
  ]);
  expect(learnt({ mostPerTask: 2, distinct: false })).toEqual([
    [0, 1],
    [1, 1],
  ]);
});

test('the same failure is avoided once', () => {
  expect(learnt({ negatives: 0.5 })).toEqual([
    [0, 1],
    [4, 1],
    [5, 1],
    [2, -0.5],
  ]);
});
