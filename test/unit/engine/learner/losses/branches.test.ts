import { expect, it } from 'vitest';
import type { TrainBatch } from '../../../../../engine/learner/contract.ts';
import { freshState, GRPO, randomBatch, settings } from '../../../../support/engine/tiny.ts';
import { learnerOfFile } from '../learner-of-file.ts';

// An episode weighs what it weighs, however many branches its tokens are in.

const learner = await learnerOfFile('eager');

/** Sequence 0 a second time: what is before the middle of its tokens is trained in the first one, the rest in the other. */
function branched(batch: TrainBatch): TrainBatch {
  const length = batch.offsets[1]!;
  const more = <T extends Float32Array | Int32Array>(of: T): T => {
    const longer = new (of.constructor as new (size: number) => T)(of.length + length);
    longer.set(of);
    longer.set(of.subarray(0, length), of.length);
    return longer;
  };
  const mask = more(batch.mask);
  const middle = length >> 1;
  mask.fill(0, middle, length);
  mask.fill(0, batch.mask.length, batch.mask.length + middle);
  return {
    tokens: more(batch.tokens),
    offsets: Int32Array.of(...batch.offsets, batch.tokens.length + length),
    mask,
    streams: { advantages: more(batch.streams.advantages!) },
    sequences: { episode: Float32Array.of(0, -1, -1, 0) },
    updates: [Int32Array.of(2, 0, 3, 1)],
  };
}

it.each(['token', 'sequence', 'dr-grpo'] as const)('by %s', async (aggregation) => {
  const whole = { ...randomBatch(3), updates: [Int32Array.of(2, 0, 1)] };
  const told = settings({ ...GRPO, temperature: 1, topK: 0, importanceCap: 0, aggregation });
  const one = await learner.step(freshState(), whole, told);
  const split = await learner.step(freshState(), branched(whole), told);
  expect(one.metrics.loss).not.toBeCloseTo(0, 3);
  expect(split.metrics.loss).toBeCloseTo(one.metrics.loss!, 5);
  expect(split.metrics.gradientNorm).toBeCloseTo(one.metrics.gradientNorm!, 5);
  const { episode: _, ...unmarked } = branched(whole).sequences;
  const unsaid = await learner.step(freshState(), { ...branched(whole), sequences: unmarked }, told);
  if (aggregation !== 'token') expect(unsaid.metrics.loss).not.toBeCloseTo(one.metrics.loss!, 5);
});
