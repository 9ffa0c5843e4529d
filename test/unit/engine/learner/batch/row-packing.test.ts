import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { gather, packRows, rowLength, scatter } from '../../../../../engine/learner/batch/row-packing.ts';

const batchOf = (lengths: number[]) => {
  const offsets = new Int32Array(lengths.length + 1);
  lengths.forEach((length, i) => (offsets[i + 1] = offsets[i]! + length));
  const tokens = Int32Array.from({ length: offsets.at(-1)! }, (_, i) => i);
  return { offsets, tokens, sequences: lengths.map((_, i) => i) };
};

describe('packing', () => {
  it('puts every token that is predicted at one place, behind the tokens of its own sequence', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 300 }), { minLength: 1, maxLength: 60 }), (lengths) => {
        const { offsets, tokens, sequences } = batchOf(lengths);
        const length = rowLength(offsets, sequences);
        const seen = new Set<number>();
        const misplaced: number[] = [];
        for (const rows of packRows(tokens, offsets, sequences, length, 1024)) {
          rows.sources.forEach((source, position) => {
            if (source < 0) return;
            const { tokens, targets, sources, segments } = rows;
            const follows =
              offsets.includes(source - 1) ||
              (sources[position - 1] === source - 1 && segments[position - 1] === segments[position]);
            const right = targets[position] === source && tokens[position] === source - 1;
            if (seen.has(source) || !right || !follows) misplaced.push(source);
            seen.add(source);
          });
        }
        expect(misplaced).toEqual([]);
        expect(seen.size).toBe(tokens.length - lengths.length);
      }),
    );
  });

  it('wastes little on ragged sequences', () => {
    const lengths = Array.from({ length: 256 }, (_, i) => 40 + ((i * 37) % 60));
    const { offsets, tokens, sequences } = batchOf(lengths);
    const batches = packRows(tokens, offsets, sequences, rowLength(offsets, sequences), 4096);
    const positions = batches.reduce((sum, { rows, length }) => sum + rows * length, 0);
    expect(tokens.length / positions).toBeGreaterThan(0.7);
  });

  it('has few shapes, whatever the number of sequences', () => {
    const shapes = new Set<string>();
    for (let count = 1; count < 200; count++) {
      const { offsets, tokens, sequences } = batchOf(Array.from({ length: count }, () => 90));
      for (const { rows, length } of packRows(
        tokens,
        offsets,
        sequences,
        rowLength(offsets, sequences),
        4096,
      )) {
        shapes.add(`${rows}×${length}`);
      }
    }
    expect([...shapes].toSorted()).toEqual(['11×96', '21×96', '3×96', '42×96']);
  });

  it('gives every core as many rows, unless there is no room for one each', () => {
    const { offsets, tokens, sequences } = batchOf(Array.from({ length: 60 }, () => 90));
    const rowsOf = (positions: number, parts: number) =>
      packRows(tokens, offsets, sequences, 96, positions, parts).map(({ rows }) => rows);
    expect(rowsOf(4096, 4)).toEqual([40, 20]);
    expect(rowsOf(4 * 96, 4).every((rows) => rows === 4)).toBe(true);
    expect(rowsOf(3 * 96, 4).every((rows) => rows <= 3)).toBe(true);
  });

  it('gives back what it gathered', () => {
    const { offsets, tokens, sequences } = batchOf([5, 9, 3]);
    const values = Float32Array.from(tokens, (token) => token / 8);
    const back = new Float32Array(tokens.length);
    for (const rows of packRows(tokens, offsets, sequences, 16, 64))
      scatter(gather(values, rows), rows, back);
    values.forEach((value, i) => expect(back[i]).toBe([0, 5, 14].includes(i) ? 0 : value));
  });
});
