import type { Tensor1D, Tensor2D } from '@tensorflow/tfjs';
import type { TensorflowBackend } from '../tensorflow/backend.ts';
import { customGradient } from '../tensorflow/custom-gradient.ts';
import { oneHot } from './one-hot.ts';

/** Rows of `table` [V, d] at `tokens` [N], int32: [N, d]. A `frozen` table has no gradient. */
export function embed(
  backend: TensorflowBackend,
  table: Tensor2D,
  tokens: Tensor1D,
  frozen = false,
): Tensor2D {
  const { tf, native } = backend;
  if (frozen) return tf.gather(table, tokens);
  const [vocabulary] = table.shape;
  return customGradient<[Tensor2D], [], Tensor2D>(
    tf,
    (table) => ({ value: tf.gather(table, tokens), saved: [] }),
    (dy) => [
      native
        ? tf.unsortedSegmentSum(dy, tokens, vocabulary)
        : // WebAssembly has no scatter-add: the same sum as a product with the one-hot matrix.
          tf.matMul(oneHot(tf, tokens, vocabulary), dy, true, false),
    ],
  )(table);
}
