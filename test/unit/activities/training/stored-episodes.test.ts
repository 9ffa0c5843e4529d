import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { drawStored } from '../../../../activities/training/stored-episodes.ts';

const source = fc.array(fc.integer({ min: 1, max: 5 }), { minLength: 1, maxLength: 6 }).map((sizes) =>
  sizes.map((size, group) => ({
    ref: { key: `g/${group}`, sha256: 'x', bytes: 1 },
    tasks: Array.from({ length: size }, (_, task) => task),
  })),
);
const drawn = (...args: Parameters<typeof drawStored>) =>
  [...drawStored(...args)].flatMap(([group, tasks]) => tasks.map((task) => `${group}/${task}`));

test('steps go through all tasks, none twice in a pass, in an order of the seed', () => {
  fc.assert(
    fc.property(source, fc.integer({ min: 1, max: 8 }), fc.nat(), (from, count, seed) => {
      const tasks = from.flatMap(({ tasks: of }) => of).length;
      const perStep = Math.min(count, tasks);
      const steps = Math.floor(tasks / perStep);
      const request = (step: number) => ({ seed, stage: 'offline', step, count });
      const pass = Array.from({ length: steps }, (_, s) => drawn(from, request(s + 1)));
      expect(pass.map(({ length }) => length)).toEqual(pass.map(() => perStep));
      expect(new Set(pass.flat()).size).toBe(steps * perStep);
      expect(new Set(drawn(from, request(steps + 1))).size).toBe(perStep);
      expect(drawn(from, request(1))).toEqual(pass[0]);
    }),
  );
});

test('another seed, and another pass, have another order', () => {
  const from = [{ ref: { key: 'g', sha256: 'x', bytes: 1 }, tasks: Array.from({ length: 40 }, (_, i) => i) }];
  const at = (seed: number, step: number) => drawn(from, { seed, stage: 'offline', step, count: 20 });
  expect(at(2, 1)).not.toEqual(at(1, 1));
  expect([...at(1, 3), ...at(1, 4)]).not.toEqual([...at(1, 1), ...at(1, 2)]);
  expect(new Set([...at(1, 3), ...at(1, 4)]).size).toBe(40);
});
