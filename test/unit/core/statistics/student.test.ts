import { expect, test } from 'vitest';
import { meanWithStudent, studentQuantile } from '../../../../core/statistics/student.ts';

test.each([
  [1, 12.7062],
  [2, 4.30265],
  [3, 3.18245],
  [4, 2.77645],
  [9, 2.26216],
  [30, 2.04227],
  [1000, 1.96234],
])('the 97.5 %% quantile with %i degrees of freedom is that of the tables', (degrees, quantile) => {
  expect(studentQuantile(0.95, degrees)).toBeCloseTo(quantile, 4);
});

test('one value has no interval, and a question without an answer is refused', () => {
  expect(meanWithStudent([1], 0.95)).toBeNull();
  const found = meanWithStudent([1, 2, 3], 0.95)!;
  expect([found.mean, found.low, found.high].map((x) => Number(x.toFixed(4)))).toEqual([2, -0.4841, 4.4841]);
  for (const [confidence, degrees] of [
    [1, 2],
    [0.9, 0],
    [0.9, 1.5],
  ] as const)
    expect(() => studentQuantile(confidence, degrees)).toThrow(RangeError);
});
