import { expect, test } from 'vitest';
import { decodeBatch, encodeBatch } from '../../../store/batches.ts';
import { writeSafetensors } from '../../../engine/safetensors/safetensors.ts';
import type { TrainBatch } from '../../../engine/learner/contract.ts';

const batch = (): TrainBatch => ({
  tokens: Int32Array.of(4, 5, 6, 7),
  offsets: Int32Array.of(0, 1, 4),
  mask: Float32Array.of(0, 0, 1, 1),
  advantages: Float32Array.of(0, 0, -1.5, -1.5),
  rolloutLogprobs: Float32Array.of(0, 0, -0.25, -3),
});

test('a batch survives a round trip, and its bytes depend on it only', () => {
  expect(decodeBatch(encodeBatch(batch()))).toEqual(batch());
  expect(encodeBatch(batch())).toEqual(encodeBatch(batch()));
});

test('what tokens were sampled among survives it, too', () => {
  const kept = { ids: Int32Array.of(1, 6, 7), offsets: Int32Array.of(0, 0, 0, 2, 3) };
  expect(decodeBatch(encodeBatch({ ...batch(), kept }))).toEqual({ ...batch(), kept });
});

test('a batch without sequences is a batch', () => {
  const none = new Float32Array(0);
  const empty = {
    tokens: new Int32Array(0),
    offsets: Int32Array.of(0),
    mask: none,
    advantages: none,
    rolloutLogprobs: none,
  };
  expect(decodeBatch(encodeBatch(empty))).toEqual(empty);
});

test.each([
  ['another length', { mask: new Float32Array(3) }],
  ['offsets that do not end with the tokens', { offsets: Int32Array.of(0, 3) }],
  ['offsets that do not start at 0', { offsets: Int32Array.of(1, 4) }],
  ['offsets that descend', { offsets: Int32Array.of(0, 3, 2, 4) }],
  ['sets for other tokens', { kept: { ids: Int32Array.of(6), offsets: Int32Array.of(0, 1) } }],
  ['sets that do not end', { kept: { ids: Int32Array.of(6), offsets: Int32Array.of(0, 0, 0, 0, 2) } }],
  ['no offsets', { offsets: new Int32Array(0) }],
])('%s is refused when it is written', (_, change) => {
  expect(() => encodeBatch({ ...batch(), ...change })).toThrow(
    expect.objectContaining({ boundary: 'store', type: 'invalid-batch' }),
  );
});

test('other tensors are not taken for a batch', () => {
  expect(() => decodeBatch(writeSafetensors(new Map()))).toThrow(/format/);
  expect(() => decodeBatch(writeSafetensors(new Map(), { format: 'gradus.batch/1' }))).toThrow(/tokens/);
});
