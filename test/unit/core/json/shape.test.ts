import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  amount,
  list,
  name,
  natural,
  nullable,
  object,
  oneOf,
  optional,
  record,
} from '../../../../core/json/shape.ts';
import * as shapes from '../../../../workflows/control/message-shapes.ts';
import { propertyRuns } from '../../../support/property-runs.ts';

const shape = object<{ id: string; costs: number[]; kind: 'a' | 'b'; note?: string | null }>({
  id: name,
  costs: list(amount),
  kind: oneOf('a', 'b'),
  note: optional(nullable(name)),
});

test.each([
  [{ id: 'x', costs: [0, 1.5], kind: 'b' }, null],
  [{ id: 'x', costs: [], kind: 'a', note: null, more: 1 }, null],
  [null, 'it: must be an object'],
  [[], 'it: must be an object'],
  [{}, 'it.id: must be a name'],
  [{ id: 'x', costs: [1, -1], kind: 'a' }, 'it.costs[1]: must be a number from 0 on'],
  [{ id: 'x', costs: {}, kind: 'a' }, 'it.costs: must be a list'],
  [{ id: 'x', costs: [], kind: 'c' }, 'it.kind: must be one of "a", "b"'],
  [{ id: 'x', costs: [], kind: 'a', note: 7 }, 'it.note: must be a name'],
])('a shape says what is wrong with %j', (value, problem) => {
  expect(shape(value, 'it')).toBe(problem);
});

test('a record is checked under every name', () => {
  expect(record(natural)({ __proto__: null, constructor: 1, x: 2 }, 'it')).toBeNull();
  expect(record(natural)({ x: 0.5 }, 'it')).toBe('it.x: must be a whole number from 0 on');
});

test('no shape of a message trips over anything', () => {
  const all = Object.values(shapes);
  fc.assert(
    fc.property(fc.anything(), fc.jsonValue(), (one, other) => {
      for (const check of all) {
        for (const value of [one, other]) {
          const problem = check(value, 'message');
          expect(problem === null || typeof problem === 'string').toBe(true);
        }
      }
    }),
    { numRuns: propertyRuns(500) },
  );
});
