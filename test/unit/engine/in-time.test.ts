import { expect, test } from 'vitest';
import { interruptedAfter } from '../../../engine/in-time.ts';

test('what comes to an end is answered, with its errors', () => {
  expect(interruptedAfter(() => 7)).toBe(7);
  const wrong = new RangeError('wrong');
  const fails = (): never => {
    throw wrong;
  };
  expect(() => interruptedAfter(fails)).toThrow(wrong);
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
  expect(() => interruptedAfter(work, 0.1)).toThrow(/longer than 0\.[124] s/u);
  expect(interruptedAfter(() => 'and the next one is answered')).toBe('and the next one is answered');
});

test('work within work has its own time', () => {
  expect(() => interruptedAfter(() => interruptedAfter(() => /(a+)+b/u.test('a'.repeat(60)), 0.1))).toThrow(
    /longer than 0\.[124] s/u,
  );
});
