import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { FirstFit } from '../../../../../engine/learner/batch/first-fit.ts';
import { processorMs } from '../../../../support/processor-time.ts';

test('each piece goes into the first row that has room', () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 1, max: 20 }), { minLength: 1 }), (pieces) => {
      const rows = new FirstFit(pieces.length, 20);
      const free: number[] = [];
      for (const piece of pieces) {
        const found = free.findIndex((room) => room >= piece);
        const row = found < 0 ? free.push(20) - 1 : found;
        free[row]! -= piece;
        expect(rows.put(piece)).toBe(row);
      }
    }),
  );
});

test('tens of thousands of pieces take no time', async () => {
  const rows = new FirstFit(65_536, 112);
  const ms = await processorMs(() => {
    for (let i = 0; i < 65_536; i++) rows.put(100);
  });
  // Row by row it is two thousand million looks.
  expect(ms).toBeLessThan(2000);
});
