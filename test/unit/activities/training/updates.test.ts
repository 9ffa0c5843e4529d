import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import { updatesOf } from '../../../../activities/training/updates.ts';

it('visits every sequence once an epoch, in an order that the seed alone decides', () => {
  const plan = { minibatch: 4, epochs: 3, seed: 5 };
  const updates = updatesOf(10, plan);
  expect(updates.map((update) => update.length)).toEqual([3, 3, 4, 3, 3, 4, 3, 3, 4]);
  for (let epoch = 0; epoch < 3; epoch++) {
    const visited = updates.slice(epoch * 3, epoch * 3 + 3).flatMap((update) => [...update]);
    expect(visited.toSorted((a, b) => a - b)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
  }
  expect(updatesOf(10, plan)).toEqual(updates);
  expect(updatesOf(10, { ...plan, seed: 6 })).not.toEqual(updates);
});

it('lets no update be one of a few sequences that were left over', () => {
  const sizes = (sequences: number, minibatch: number) =>
    updatesOf(sequences, { minibatch, epochs: 1, seed: 7 }).map((update) => update.length);
  // Three late episodes in a step of 512.
  expect(sizes(515, 256)).toEqual([171, 172, 172]);
  expect(sizes(512, 256)).toEqual([256, 256]);
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 600 }),
      fc.integer({ min: 1, max: 300 }),
      (sequences, minibatch) => {
        const cut = sizes(sequences, minibatch);
        expect(cut).toHaveLength(Math.ceil(sequences / minibatch));
        expect(Math.max(...cut)).toBeLessThanOrEqual(minibatch);
        expect(Math.max(...cut) - Math.min(...cut)).toBeLessThanOrEqual(1);
      },
    ),
  );
});

it('cuts as many sequences as any step may have', () => {
  const most = 262_144;
  const pairs = Array.from({ length: most / 2 }, (_, pair) => [2 * pair, 2 * pair + 1]);
  for (const sequences of [most, pairs]) {
    const updates = updatesOf(sequences, { minibatch: 4096, epochs: 1, seed: 3 });
    expect(updates.map(({ length }) => length)).toEqual(Array(64).fill(4096));
  }
});
