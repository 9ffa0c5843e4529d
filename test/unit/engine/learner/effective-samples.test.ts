import { expect, test } from 'vitest';
import { effectiveSamples } from '../../../../engine/learner/step/effective-samples.ts';

const batch = {
  offsets: Int32Array.of(0, 3, 6, 8),
  mask: Float32Array.of(0, 1, 1, 0, 1, 1, 0, 0),
  streams: { samplerLogprobs: new Float32Array(8).fill(-1) },
};
/** Weights 1 and 1 of the first sequence, 3 and 1 of the second; what the mask leaves out weighs far more. */
const logprobs = Float32Array.of(9, -1, -1, 9, Math.log(3) - 1, -1, 9, 9);

test('is (Σw)² / N Σw², of tokens and of whole sequences', () => {
  const { tokens, sequences } = effectiveSamples(batch, [0, 1, 2], logprobs)!;
  expect(tokens).toBeCloseTo(36 / (4 * 12), 6);
  expect(sequences).toBeCloseTo(16 / (2 * 10), 6);
});

test('does not depend on the scale of the weights, however large their product is', () => {
  const far = logprobs.map((value) => value + 500);
  expect(effectiveSamples(batch, [0, 1], far)!.tokens).toBeCloseTo(0.75, 3);
});

test('of nothing it is not known', () => {
  expect(effectiveSamples(batch, [2], logprobs)).toBeNull();
  expect(effectiveSamples({ ...batch, streams: {} }, [0], logprobs)).toBeNull();
});
