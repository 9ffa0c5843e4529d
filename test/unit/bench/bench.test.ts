import { expect, test } from 'vitest';
import { pairedDifference, benchRowsOf } from '../../../bench/bench.ts';
import { median } from '../../../core/statistics/median.ts';

const named = { bench: 'b', case: 'c', unit: 'u' };
const row = (better: 'more' | 'less', ours: number[], anchor: number[] | number | null) =>
  benchRowsOf('b')('c', 'u', better, ours, anchor);

test('a median is the middle value, or the mean of the middle two, in any order', () => {
  expect(median([9, 1, 5])).toBe(5);
  expect(median([10, 1, 2, 4])).toBe(3);
  expect(median([7])).toBe(7);
  expect(() => median([])).toThrow(RangeError);
});

test('a ratio is greater than 1 where ours is better, whether more or less is better', () => {
  expect(row('more', [30, 20, 10], [10]).ratio).toBe(2);
  expect(row('less', [11], [10]).ratio).toBe(0.90909);
  expect(row('less', [16, 32, 48], 64)).toEqual({
    ...named,
    ours: 32,
    anchor: 64,
    ratio: 2,
    runs: 3,
  });
});

test('what has no anchor, or nothing to divide by, has no ratio, and every row is JSON', () => {
  expect(row('less', [3], null)).toMatchObject({
    anchor: null,
    ratio: null,
  });
  const zero = row('less', [0], 5);
  expect(zero.ratio).toBeNull();
  expect(JSON.parse(JSON.stringify(zero))).toEqual(zero);
});

test('figures keep five significant digits', () => {
  expect(row('more', [123456.789], [0.0001234567])).toMatchObject({
    ours: 123460,
    anchor: 0.00012346,
  });
});

test('a difference is taken run by run, with the interval of Student for so few of them', () => {
  // Differences 1, 2, 3: mean 2, standard error 1 / √3, t 4.30265 with two degrees of freedom.
  expect(pairedDifference([5, 7, 6], [4, 5, 3])).toEqual({
    mean: 2,
    low: -0.48414,
    high: 4.4841,
  });
  expect(pairedDifference([0.5], [0.4])).toBeNull();
});
