import { array, assert, integer, property } from 'fast-check';
import { expect, test } from 'vitest';
import { endToEnd, packFacts, PackedFacts, Reader, withLength } from '../../../../runs/find/packed-facts.ts';
import { someFacts } from '../../../support/some-facts.ts';

test('facts come back as they were, to the bit, wherever their bytes lie', () => {
  assert(
    property(array(someFacts, { maxLength: 12 }), integer({ min: 0, max: 9 }), (rows, before) => {
      const packed = packFacts(rows);
      const moved = new Uint8Array(before + packed.length);
      moved.set(packed, before);
      const read = new PackedFacts(moved.subarray(before));
      expect(read.length).toBe(rows.length);
      expect(read.all()).toEqual(rows);
    }),
  );
});

test('several packs in one file are read one after the other', () => {
  assert(
    property(array(array(someFacts, { maxLength: 4 }), { maxLength: 4 }), (steps) => {
      const packs = steps.map((rows) => packFacts(rows));
      const lengths = packs.map(({ length }) => length);
      const reader = new Reader(endToEnd([...withLength(lengths), ...packs]));
      const read = (reader.head() as number[]).map((length) => new PackedFacts(reader.bytes(length)).all());
      expect(read).toEqual(steps);
    }),
  );
});
