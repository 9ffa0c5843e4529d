import { expect, test } from 'vitest';
import { pairsInwards } from '../../../../core/algorithms/pairs.ts';

const pairsOf = (worths: readonly number[], margin = 0) =>
  pairsInwards(
    worths.map((worth, at) => ({ worth, at })),
    margin,
  ).map(({ better, worse }) => [better.at, worse.at]);

test('the best is paired with the worst, and so inwards', () => {
  expect(pairsOf([0, 3, 1, 2])).toEqual([
    [1, 0],
    [3, 2],
  ]);
  expect(pairsOf([1, 1, 1])).toEqual([]);
  expect(pairsOf([0, 1], 1)).toEqual([]);
});

test('what differs by rounding alone is equal: it makes no pair', () => {
  expect(pairsOf([0.3, 0.1 + 0.2])).toEqual([]);
  expect(pairsOf([0.1 + 0.2, 0], 0.3)).toEqual([]);
});

test('a difference that is no number makes no pair', () => {
  expect(pairsOf([NaN, 0])).toEqual([]);
});
