import { describe, expect, test } from 'vitest';
import {
  algorithmSchema,
  computeAdvantages,
  planAlgorithm,
  refuseAlgorithm,
} from '../../../../core/algorithms/index.ts';
import type { TaskGroup } from '../../../../core/algorithms/task-group.ts';
import type { Sample } from '../../../../core/algorithms/sample.ts';
import { sampling } from '../training/scripted-training.ts';
import { taskGroup } from '../../../support/task-group.ts';

const specOf = (over: object = {}) => algorithmSchema.parse({ kind: 'hindsight', ...over });
const sample = (success: boolean | null): Sample => ({
  reward: success === null ? null : Number(success),
  success,
  tokens: [7, 8, 9],
  mask: [1, 0, 1],
  turns: [],
  before: [],
  samplerLogprobs: [-1, 0, -1],
  scores: {},
  truncated: false,
});
const group = (successes: (boolean | null)[], hindsight = false): TaskGroup =>
  taskGroup(successes.map(sample), { hindsight });
const imitated = (groups: TaskGroup[], over: object = {}) =>
  computeAdvantages(specOf(over), groups).map((entry) => [entry.group, entry.sample, entry.advantages]);

test('corrections that succeed are imitated, and what fails, hinted or not, teaches nothing', () => {
  const groups = [group([false, true, null]), group([false, true, true], true)];
  expect(imitated(groups)).toEqual([
    [0, 1, [1, 0, 1]],
    [1, 1, [1, 0, 1]],
    [1, 2, [1, 0, 1]],
  ]);
  expect(imitated(groups, { ownSuccesses: false }).map(([g]) => g)).toEqual([1, 1]);
  expect(imitated(groups, { mostPerTask: 1 }).map(([g, s]) => [g, s])).toEqual([
    [0, 1],
    [1, 1],
  ]);
});

test('its plan asks again, of the policy itself or of a teacher', () => {
  const planOf = (over: object) => planAlgorithm(specOf(over), sampling);
  expect(planOf({})).toMatchObject({
    objective: { kind: 'supervised' },
    hindsight: { corrections: 4, teacher: null, relabel: false },
  });
  expect(planOf({ teacher: 'expert@9', relabel: true, corrections: 1 }).hindsight).toEqual({
    corrections: 1,
    teacher: 'expert@9',
    relabel: true,
  });
  expect(planOf({ teacher: 'expert' }).teachers).toEqual([]);
});

describe('is refused', () => {
  const context = {
    lora: false,
    late: false,
    stored: false,
    lags: null,
    tree: false,
    relabels: false,
    turnRewards: false,
    maxCompletionTokens: 160,
    environments: ['calculator'],
  };
  test.each([
    [{ corrections: 0 }, 'corrections', 'rft imitates successes alone'],
    [{ corrections: 0, teacher: 'expert', relabel: true }, 'teacher', 'has no effect where corrections = 0'],
    [{ relabel: true }, 'relabel', 'no environment of the stage'],
  ])('where it would do nothing: %o', (over, field, message) => {
    expect(refuseAlgorithm(specOf(over), context)).toMatchObject([
      { field, message: expect.stringContaining(message) as string },
    ]);
  });

  test('and not where it does something', () => {
    const relabels = { ...context, relabels: true };
    expect(refuseAlgorithm(specOf(), context)).toEqual([]);
    expect(refuseAlgorithm(specOf({ corrections: 0, relabel: true }), relabels)).toEqual([]);
  });
});
