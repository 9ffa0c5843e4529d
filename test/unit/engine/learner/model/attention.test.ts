import type { Tensor, Tensor4D } from '@tensorflow/tfjs';
import { beforeAll, expect, test } from 'vitest';
import { normal, randomKey } from '../../../../../core/random.ts';
import {
  loadTensorflowBackend,
  type TensorflowBackend,
} from '../../../../../engine/learner/tensorflow/backend.ts';
import { attention, attentionMask } from '../../../../../engine/learner/model/attention.ts';

let backend: TensorflowBackend;
beforeAll(async () => {
  backend = await loadTensorflowBackend('cpu');
});

const [ROWS, HEADS, KEY_HEADS, HEAD_SIZE] = [2, 4, 2, 8];

/** The whole square of scores, keys repeated for each query head, gradients by tfjs. */
function plain(q: Tensor4D, k: Tensor4D, v: Tensor4D, mask: Tensor4D): Tensor4D {
  const { tf } = backend;
  const [rows, keyHeads, length, headSize] = k.shape;
  const repeated = (x: Tensor4D): Tensor4D => {
    const apart = tf.reshape(x, [rows, keyHeads, 1, length, headSize]);
    return tf.reshape(tf.concat(Array<Tensor>(HEADS / KEY_HEADS).fill(apart), 2), q.shape);
  };
  const scores = tf.add(tf.matMul(q, repeated(k), false, true), mask);
  return tf.matMul(tf.softmax(scores), repeated(v));
}

const difference = (a: Tensor, b: Tensor): number =>
  backend.tf.max(backend.tf.abs(backend.tf.sub(a, b))).dataSync()[0]!;

test.each([
  ['one block', 48],
  ['two blocks', 64],
  ['four blocks', 128],
])('%s of queries: result and gradients of the whole square', (_, length) => {
  const { tf } = backend;
  const values = (name: string, heads: number): Tensor4D => {
    const key = randomKey('attention', name);
    const shape: [number, number, number, number] = [ROWS, heads, length, HEAD_SIZE];
    return tf.tensor4d(
      Float32Array.from({ length: ROWS * heads * length * HEAD_SIZE }, (_, i) => normal(key, i)),
      shape,
    );
  };
  const inputs = [values('q', HEADS), values('k', KEY_HEADS), values('v', KEY_HEADS)];
  const dy = values('dy', HEADS);
  // Sequences that end within a block and at its border, and one that goes through all.
  const borders = [[10, length / 2], []];
  const segments = tf.tensor2d(
    borders.map((ends) => Array.from({ length }, (_, i) => ends.filter((end) => end <= i).length)),
    [ROWS, length],
    'int32',
  );
  const mask = attentionMask(tf, segments);
  const run = (compute: typeof plain): Tensor[] => {
    const f = (q: Tensor, k: Tensor, v: Tensor) => compute(q as Tensor4D, k as Tensor4D, v as Tensor4D, mask);
    return [f(...(inputs as [Tensor, Tensor, Tensor])), ...tf.grads(f)(inputs, dy)];
  };
  const ours = run((...given) => attention(tf, ...given));
  const expected = run(plain);
  expect(ours).toHaveLength(4);
  ours.forEach((tensor, i) => {
    expect(tensor.shape).toEqual(expected[i]!.shape);
    expect(difference(tensor, expected[i]!)).toBeLessThan(1e-4);
  });
});
