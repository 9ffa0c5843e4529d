import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { commonStart } from '../../../../runs/episodes/common-start.ts';

test('lists have in common what they begin with', () => {
  expect(commonStart([])).toBe(0);
  expect(commonStart([[1, 2]])).toBe(0);
  expect(
    commonStart([
      [1, 2, 3],
      [1, 2],
    ]),
  ).toBe(2);
  fc.assert(
    fc.property(fc.array(fc.nat(3)), fc.array(fc.nat(3)), fc.array(fc.nat(3)), (start, a, b) => {
      const [first, second] = [
        [...start, ...a],
        [...start, ...b],
      ];
      const n = commonStart([first, second]);
      expect(n).toBeGreaterThanOrEqual(start.length);
      expect(first.slice(0, n)).toEqual(second.slice(0, n));
      if (n < Math.min(first.length, second.length)) expect(first[n]).not.toBe(second[n]);
    }),
  );
});
