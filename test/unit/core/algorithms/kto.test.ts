import { expect, test } from 'vitest';
import { algorithmSchema, computeAdvantages } from '../../../../core/algorithms/index.ts';
import type { TaskGroup } from '../../../../core/algorithms/task-group.ts';
import { taskGroup } from '../../../support/task-group.ts';

const group = (rewards: (number | null)[]): TaskGroup =>
  taskGroup(
    rewards.map((reward) => ({
      reward,
      success: reward === null ? null : reward === 1,
      tokens: [7, 8, 9],
      mask: [1, 0, 1],
      before: [],
      turns: [{ start: 0, end: 3, reward: 0, state: 'prompt' }],
      samplerLogprobs: [-1, 0, -1],
      scores: {},
      truncated: false,
    })),
  );
const credit = (groups: TaskGroup[]) => computeAdvantages(algorithmSchema.parse({ kind: 'kto' }), groups);

test('every completion is put after the prompt of another task, too, for its reference point', () => {
  const computed = credit([group([1, 0]), group([null, 1]), group([0])]);
  expect(computed.map(({ group: g, sample, label, promptOf }) => [g, sample, label, promptOf])).toEqual([
    [0, 0, 1, undefined],
    [0, 1, -1, undefined],
    [1, 1, 1, undefined],
    [2, 0, -1, undefined],
    [0, 0, 0, 1],
    [0, 1, 0, 1],
    [1, 1, 0, 2],
    [2, 0, 0, 0],
  ]);
  // They are compared with, and teach nothing themselves.
  expect(computed.filter(({ label }) => label === 0).flatMap(({ advantages }) => advantages)).toEqual(
    Array<number>(12).fill(0),
  );
});

test('and a step of one task has none', () => {
  expect(credit([group([1, 0])]).map(({ label }) => label)).toEqual([1, -1]);
});
