import { expect, test } from 'vitest';
import { computeAdvantages, algorithmSchema } from '../../../../core/algorithms/index.ts';
import type { TaskGroup } from '../../../../core/algorithms/task-group.ts';
import { rewardedGroup } from '../../../support/rewarded-group.ts';

const spec = algorithmSchema.parse({ kind: 'reinforce++', baseline: 'level', minibatch: 4 });
const advantages = (...groups: TaskGroup[]): number[] =>
  computeAdvantages(spec, groups).map(({ advantages: [first] }) => first!);

test('each level has a baseline of its own: what is easy at one says nothing of another', () => {
  const [low, high, rare, common] = advantages(
    rewardedGroup(1, 0),
    rewardedGroup(1, 1),
    rewardedGroup(4, -1, -0.5),
  );
  expect([low, high, rare, common].map((one) => one!.toFixed(4))).toEqual([
    '-0.7071',
    '0.7071',
    '-0.7071',
    '0.7071',
  ]);
  // One baseline for all would call the better proposal worse than a task that no sample solved.
  expect(common).toBeGreaterThan(0);
});

test('a level whose rewards are all the same teaches nothing, and what was not judged has no part', () => {
  expect(
    advantages(rewardedGroup(1, 1, 1, null), rewardedGroup(2, 0, 1)).map((one) => one.toFixed(4)),
  ).toEqual(['0.0000', '0.0000', '-0.7071', '0.7071']);
});

test('samples of one task alone need no others of their task', () => {
  expect(
    advantages(rewardedGroup(4, 0.5), rewardedGroup(4, 0.25), rewardedGroup(4, -1)).every((one) => one !== 0),
  ).toBe(true);
});
