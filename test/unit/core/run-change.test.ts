import { expect, test } from 'vitest';
import { changedBudget, nothingChanged, withChange } from '../../../core/run-change.ts';
import type { StoredChange, RunChange } from '../../../core/run-change.ts';

const kept = (number: number, change: RunChange): StoredChange => ({
  number,
  after: number - 1,
  update: `update-${number}`,
  at: '2026-11-23T00:00:00.000Z',
  stage: 'rl',
  step: 3,
  ...change,
});

test('of two changes of the same limit the later one holds, and what neither names stays', () => {
  const first = withChange(
    nothingChanged(),
    kept(1, { budgets: { exact: { count: 5, usd: 2 } }, maxSteps: { rl: 10 } }),
  );
  const both = withChange(first, kept(2, { budgets: { exact: { count: 9 }, near: { usd: null } } }));
  expect(both).toEqual({
    newest: 2,
    budgets: { exact: { count: 9, usd: 2 }, near: { usd: null } },
    maxSteps: { rl: 10 },
  });
  expect(withChange(both, kept(4, { maxSteps: { rl: 7, later: 2 } }))).toMatchObject({
    newest: 4,
    maxSteps: { rl: 7, later: 2 },
  });
});

test('a change of a budget keeps the limits that it does not name, and null takes one away', () => {
  const budget = { count: 5, usd: 2, perStep: 1 };
  expect(changedBudget(budget, { count: 8 })).toEqual({ count: 8, usd: 2, perStep: 1 });
  expect(changedBudget(budget, { usd: null, seconds: 60 })).toEqual({ count: 5, seconds: 60, perStep: 1 });
  expect(changedBudget(budget, { count: 0 })).toEqual({ count: 0, usd: 2, perStep: 1 });
});
