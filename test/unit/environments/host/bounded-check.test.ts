import { expect, test } from 'vitest';
import { inBounds, LimitReached } from '../../../../environments/host/bounded-check.ts';

const forEver = (): never => {
  for (;;);
};
/** A process that the machine gives no processor time. */
const spentMs = (): number => 0;

test('what a busy machine has stopped is begun anew, with more time', () => {
  let begun = 0;
  const work = (): string => (++begun === 1 ? forEver() : 'done');
  expect(inBounds(work, { limitMs: 500, attempts: 2, spentMs })).toBe('done');
  expect(begun).toBe(2);
});

test('waiting is not work: a process that sleeps has not reached a limit in processor time', () => {
  const waiting = new Int32Array(new SharedArrayBuffer(4));
  // Longer than the first two attempts, shorter than the third and the others, of which each has twice the time of the one
  // before; what other threads of the process compile takes less.
  const bounds = { limitMs: 500, enoughMs: 500, attempts: 6 };
  expect(inBounds(() => Atomics.wait(waiting, 0, 0, 1250), bounds)).toBe('timed-out');
});

test('what has had its processor time is stopped for good', () => {
  let clock = 0;
  let begun = 0;
  const work = (): never => {
    begun++;
    return forEver();
  };
  expect(() =>
    // Long enough for the work to begin on a busy machine.
    inBounds(work, { limitMs: 500, enoughMs: 10, attempts: 3, spentMs: () => (clock += 10) }),
  ).toThrow(LimitReached);
  expect(begun).toBe(1);
});

test('a machine that stays busy is named, and nothing is said of the schema', () => {
  let begun = 0;
  const work = (): never => {
    begun++;
    return forEver();
  };
  expect(() => inBounds(work, { limitMs: 200, attempts: 3, spentMs })).toThrow(
    expect.objectContaining({ boundary: 'infra', type: 'busy', retryable: true }),
  );
  expect(begun).toBe(3);
});
