import { expect, test } from 'vitest';
import { LONGEST_HELD_MS, WorkQueue } from '../../../dashboard/turns.ts';

/** Until all that can be done without time going by is done. */
const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test('of what comes at once two works go on, the others in their order, each after the rest of a place', async () => {
  const rests: (() => void)[] = [];
  const turns = new WorkQueue({
    atOnce: 2,
    pause: (ms) =>
      new Promise<void>((resolve) => {
        if (ms < LONGEST_HELD_MS) rests.push(resolve);
      }),
  });
  const begun: number[] = [];
  const ends: (() => void)[] = [];
  const all = [0, 1, 2, 3].map((n) =>
    turns.take(() => {
      begun.push(n);
      return new Promise<number>((resolve) => ends.push(() => resolve(n)));
    }),
  );
  await settled();
  expect(begun).toEqual([0, 1]);
  ends[1]!();
  expect(await all[1]).toBe(1);
  await settled();
  expect(begun).toEqual([0, 1]);
  rests[0]!();
  await settled();
  expect(begun).toEqual([0, 1, 2]);
  ends[0]!();
  ends[2]!();
  await settled();
  for (const rest of rests.splice(1)) rest();
  await settled();
  expect(begun).toEqual([0, 1, 2, 3]);
  ends[3]!();
  expect(await Promise.all(all)).toEqual([0, 1, 2, 3]);
});

test('work that fails gives its place back', async () => {
  const turns = new WorkQueue({ atOnce: 1, pause: () => Promise.resolve() });
  await expect(turns.take(() => Promise.reject(new Error('no page')))).rejects.toThrow('no page');
  expect(await turns.take(() => Promise.resolve('next'))).toBe('next');
});

test('work that does not end keeps nobody waiting', async () => {
  const pauses: (() => void)[] = [];
  const turns = new WorkQueue({
    atOnce: 1,
    pause: () => new Promise<void>((resolve) => pauses.push(resolve)),
  });
  void turns.take(() => new Promise(() => undefined));
  const next = turns.take(() => Promise.resolve('next'));
  await settled();
  // It has been held for long enough, and has rested.
  pauses[0]!();
  await settled();
  pauses[1]!();
  expect(await next).toBe('next');
});
