import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { packing, positionsIn, type PackedRows } from '../../../../../engine/learner/batch/row-packing.ts';
import { loadTensorflowBackend } from '../../../../../engine/learner/tensorflow/backend.ts';

const { native } = await loadTensorflowBackend('cpu');
const VOCABULARY = 50;

interface Sequence {
  prompt: number[];
  completion: number[];
  /** What counts of the completion; absent: all of it. */
  counts?: (0 | 1)[];
}

/** Sequences as prompt and completion; only the latter counts. */
function batchOf(sequences: Sequence[]) {
  const offsets = new Int32Array(sequences.length + 1);
  sequences.forEach(({ prompt, completion }, i) => {
    offsets[i + 1] = offsets[i]! + prompt.length + completion.length;
  });
  return {
    offsets,
    tokens: Int32Array.from(sequences.flatMap(({ prompt, completion }) => [...prompt, ...completion])),
    mask: Float32Array.from(
      sequences.flatMap(({ prompt, completion, counts }) => [
        ...prompt.map(() => 0),
        ...completion.map((_, i) => counts?.[i] ?? 1),
      ]),
    ),
  };
}

type Batch = ReturnType<typeof batchOf>;
const packed = (batch: Batch, sharePrompts: boolean | undefined, threads = 1, microBatchTokens = 0) => {
  const all = Array.from({ length: batch.offsets.length - 1 }, (_, i) => i);
  const compute = { microBatchTokens, ...(sharePrompts !== undefined && { sharePrompts }) };
  return packing({ threads, native }, { vocabSize: VOCABULARY }, compute, batch, all)(all);
};

/** The tokens of a place's own sequence up to it, by what its positions hold. */
function contextOf(rows: PackedRows, place: number, places: number): number[] {
  const core = Math.floor(place / places);
  const start = core * (rows.tokens.length / (rows.segments.length / places));
  const context: number[] = [];
  for (let at = place; ; at--) {
    context.unshift(rows.tokens[start + rows.shared!.positionOf[at]!]!);
    if (at % rows.length === 0 || rows.segments[at - 1] !== rows.segments[at]) return context;
  }
}

const prompt = Array.from({ length: 32 }, (_, i) => (i * 7) % VOCABULARY);
const completion = (length: number, seed: number) =>
  Array.from({ length }, (_, i) => (i * 11 + seed * 13) % VOCABULARY);
const group = (own: number[], samples: number, length = 30) =>
  Array.from({ length: samples }, (_, i) => ({ prompt: own, completion: completion(length, i) }));

describe('shared prompts', () => {
  it('keep each token that counts at one position, behind the tokens of its own sequence', () => {
    const tokens = fc.array(fc.integer({ min: 0, max: 3 }), { minLength: 1, maxLength: 40 });
    // What tools answer stands between what was sampled, and does not count.
    const counts = fc.array(fc.constantFrom(0 as const, 1 as const), { minLength: 40, maxLength: 40 });
    const groups = fc.array(
      fc.record({
        prompt: tokens,
        completions: fc.array(fc.tuple(tokens, counts), { minLength: 1, maxLength: 6 }),
      }),
      { minLength: 1, maxLength: 6 },
    );
    let shared = 0;
    fc.assert(
      fc.property(groups, fc.constantFrom(1, 2), fc.constantFrom(0, 160), (given, threads, most) => {
        const batch = batchOf(
          given.flatMap(({ prompt, completions }) =>
            completions.map(([completion, counts]) => ({ prompt, completion, counts })),
          ),
        );
        const counted = new Set<number>();
        for (const rows of packed(batch, true, threads, most)) {
          const places = rows.segments.length / (rows.rows % threads === 0 ? threads : 1);
          rows.sources.forEach((source, position) => {
            if (source < 0 || batch.mask[source] !== 1) return;
            expect(counted.has(source)).toBe(false);
            counted.add(source);
            expect(rows.targets[position]).toBe(batch.tokens[source]);
            if (!rows.shared) return;
            shared++;
            const start = batch.offsets.findLast((offset) => offset <= source)!;
            const core = Math.floor(position / (rows.tokens.length / (rows.segments.length / places)));
            const place = core * places + rows.shared.placeOf[position]!;
            expect(contextOf(rows, place, places)).toEqual(Array.from(batch.tokens.slice(start, source)));
          });
        }
        expect(counted.size).toBe(batch.mask.reduce((sum, bit) => sum + bit, 0));
      }),
    );
    expect(shared).toBeGreaterThan(0);
  });

  it('compute a prompt once for eight samples', () => {
    const batch = batchOf(group(prompt, 8, 33));
    expect(positionsIn(packed(batch, false, 1, 512))).toBe(8 * 64);
    // 31 positions of the prompt and 33 of each sample make 295: the next sixteenth of 512.
    expect(positionsIn(packed(batch, true, 1, 512))).toBe(320);
  });

  it('compute it again in each micro-batch that has samples of it', () => {
    const rows = packed(batchOf(group(prompt, 8, 33)), true, 1, 256);
    expect(rows.map(({ rows }) => rows)).toEqual([4, 4]);
    // 31 + 4 · 33 = 163, of 256.
    expect(rows.map(({ tokens }) => tokens.length)).toEqual([176, 176]);
  });

  it('share up to the first token that differs', () => {
    const other = prompt.with(16, 1 + prompt[16]!);
    const batch = batchOf([...group(prompt, 4, 33), ...group(other, 4, 33)]);
    // 16 of both prompts, 15 more of each, and 33 of each sample.
    expect(positionsIn(packed(batch, true, 1, 512))).toBe(Math.ceil((16 + 2 * 15 + 8 * 33) / 32) * 32);
  });

  it('change nothing where there is nothing to share, or where it is not asked for', () => {
    const alone = batchOf(
      [0, 1, 2, 3].map((i) => ({ prompt: [i, ...prompt], completion: completion(30, i) })),
    );
    expect(packed(alone, true)).toEqual(packed(alone, false));
    const together = batchOf(group(prompt, 8));
    expect(packed(together, undefined)).toEqual(packed(together, false));
    expect(packed(together, undefined)[0]).not.toHaveProperty('shared');
    const short = batchOf(group([1, 2], 8));
    expect(packed(short, true)).toEqual(packed(short, false));
  });
});
