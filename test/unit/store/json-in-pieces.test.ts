import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import { jsonInPieces } from '../../../store/json-in-pieces.ts';
import { atOnce } from '../../../engine/in-pieces.ts';

it('is what JSON.stringify writes, whatever the data', () => {
  fc.assert(
    fc.property(fc.object({ maxDepth: 6, withBigInt: false, withNullPrototype: false }), (value) => {
      expect(atOnce(jsonInPieces(value))).toBe(JSON.stringify(value));
    }),
  );
});

it('leaves out what is undefined in an object and writes null for it in an array, as JSON.stringify does', () => {
  const value = {
    a: undefined,
    b: [{ c: undefined }, undefined, Number.NaN],
    d: -0,
    e: { f: [[undefined]] },
  };
  expect(atOnce(jsonInPieces(value))).toBe(JSON.stringify(value));
});
