import { expect, it } from 'vitest';
import { mostDeviating } from '../../../../core/algorithms/group-baseline.ts';
import type { TaskGroup } from '../../../../core/algorithms/task-group.ts';
import type { Sample } from '../../../../core/algorithms/sample.ts';
import { taskGroup } from '../../../support/task-group.ts';

const sample = (reward: number | null): Sample => ({
  reward,
  success: null,
  tokens: [],
  mask: [],
  turns: [],
  before: [],
  samplerLogprobs: [],
  scores: {},
  truncated: false,
});

it('keeps the whole number of groups that a share is, though doubles make it a hair less', () => {
  const groups = (count: number): TaskGroup[] =>
    Array.from({ length: count }, (_, i) => taskGroup([sample(0), sample(i + 1)]));
  expect(mostDeviating(groups(50), 0.58).size).toBe(29);
  expect(mostDeviating(groups(100), 0.29).size).toBe(29);
  expect(mostDeviating(groups(3), 0.5).size).toBe(1);
  expect(mostDeviating(groups(3), 0.1).size).toBe(1);
});

it('ranks, and takes the share of, the groups alone that have two rewards or more', () => {
  const group = (...rewards: (number | null)[]): TaskGroup => taskGroup(rewards.map(sample));
  const ended = group(null, null);
  const oneLeft = group(1, null);
  const judged = [group(0, 1), group(0, 2), group(0, 3), group(0, 0.5)];
  expect(mostDeviating([ended, ...judged, ended, oneLeft, ended], 0.5)).toEqual(new Set([2, 3]));
  expect(mostDeviating([ended, group(1, 1), oneLeft], 0.5)).toEqual(new Set([1]));
  expect(mostDeviating([ended, ended], 0.5)).toEqual(new Set());
  // All of them is all of them: one sample's episode still says what its critic's value should have been.
  expect(mostDeviating([ended, group(0, 1), oneLeft], 1)).toEqual(new Set([0, 1, 2]));
});

it('takes the earlier of groups whose rewards deviate alike, though doubles make the later one a hair more', () => {
  const group = (...rewards: number[]): TaskGroup => taskGroup(rewards.map(sample));
  const orders = [
    [0.1, 0.2, 0.7],
    [0.1, 0.7, 0.2],
    [0.2, 0.1, 0.7],
    [0.2, 0.7, 0.1],
    [0.7, 0.1, 0.2],
    [0.7, 0.2, 0.1],
  ];
  for (const one of orders)
    for (const other of orders)
      expect(mostDeviating([group(...one), group(...other)], 0.5)).toEqual(new Set([0]));
});
