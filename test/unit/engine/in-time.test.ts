import { expect, test } from 'vitest';
import { inTime } from '../../../engine/in-time.ts';

test('what comes to an end is answered, with its errors', () => {
  expect(inTime(() => 7)).toBe(7);
  const wrong = new RangeError('wrong');
  const fails = (): never => {
    throw wrong;
  };
  expect(() => inTime(fails)).toThrow(wrong);
});

test.each([
  [
    'a loop, also one that takes what is thrown',
    () => {
      for (;;) {
        try {
          for (;;);
        } catch {
          // Goes on.
        }
      }
    },
  ],
  ['a pattern that backtracks', () => /(a+)+b/u.test('a'.repeat(60))],
])('%s: is ended where it is', (_, work) => {
  expect(() => inTime(work, 0.1)).toThrow(/longer than 0\.[124] s/u);
  expect(inTime(() => 'and the next one is answered')).toBe('and the next one is answered');
});

test('work within work has its own time', () => {
  expect(() => inTime(() => inTime(() => /(a+)+b/u.test('a'.repeat(60)), 0.1))).toThrow(
    /longer than 0\.[124] s/u,
  );
});
