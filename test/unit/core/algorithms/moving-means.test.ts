import { expect, test } from 'vitest';
import { algorithmSchema, computeAdvantages, movingMeans } from '../../../../core/algorithms/index.ts';
import type { MovingMeans } from '../../../../core/algorithms/moving-means.ts';
import type { TaskGroup } from '../../../../core/algorithms/task-group.ts';
import { rewardedGroup } from '../../../support/rewarded-group.ts';

const parse = (more: object = {}) =>
  algorithmSchema.parse({ kind: 'reinforce++', baseline: 'moving', minibatch: 4, ...more });
const advantages = (groups: TaskGroup[], before?: MovingMeans): number[] =>
  computeAdvantages(parse(), groups, before).map(({ advantages: [first] }) => first!);

test('rewards are compared with what their level earned before, and are not standardized', () => {
  const before = { 'programs:1': 0.75, 'programs:4': -0.5 };
  expect(advantages([rewardedGroup(1, 1, 0, null), rewardedGroup(4, -1)], before)).toEqual([
    0.25, -0.75, -0.5,
  ]);
});

test('a step whose samples all earn the same teaches, where that is more than it was', () => {
  expect(advantages([rewardedGroup(1, 1, 1)], { 'programs:1': 0.25 })).toEqual([0.75, 0.75]);
});

test('the first step of a level is compared with its own mean', () => {
  expect(advantages([rewardedGroup(1, 1, 0), rewardedGroup(4, 3)], { 'programs:4': 1 })).toEqual([
    0.5, -0.5, 2,
  ]);
});

test('a step moves the mean as one update a sample does, whatever their order', () => {
  const moved = (rewards: number[]): MovingMeans =>
    movingMeans(parse({ baselineDecay: 0.5 }), [rewardedGroup(1, ...rewards)], {
      'programs:1': 1,
      'programs:4': 7,
    })!;
  let one = 1;
  for (const reward of [3, 3, 3]) one = 0.5 * one + 0.5 * reward;
  expect(moved([3, 3, 3])).toEqual({ 'programs:1': one, 'programs:4': 7 });
  expect(moved([0, 1, 5])).toEqual(moved([5, 0, 1]));
  // 0.5³ of what it was, and the rest of the mean of 2.
  expect(moved([0, 1, 5])['programs:1']).toBe(0.125 + 0.875 * 2);
});

test('the usual decay is 0.95 a sample, and other baselines leave nothing', () => {
  const group = [rewardedGroup(1, 0)];
  expect(movingMeans(parse(), group, { 'programs:1': 1 })).toEqual({ 'programs:1': 0.95 });
  expect(movingMeans(parse({ baseline: 'level' }), group)).toBeUndefined();
});
