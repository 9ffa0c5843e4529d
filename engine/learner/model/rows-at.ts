import type { Tensor1D, Tensor2D } from '@tensorflow/tfjs';
import type { TensorflowBackend } from '../tensorflow/backend.ts';
import { customGradient } from '../tensorflow/custom-gradient.ts';
import { oneHot } from './one-hot.ts';

/** Rows of x [M, d] at `indices` [K], int32: [K, d]. No gradient flows through it. */
export const gatherRows = ({ tf, native }: TensorflowBackend, x: Tensor2D, indices: Tensor1D): Tensor2D =>
  native ? native.gatherRows(x, indices) : tf.gather(x, indices);

/** The same. A row's gradient is the sum over its copies. */
export function rowsAt(backend: TensorflowBackend, x: Tensor2D, indices: Tensor1D): Tensor2D {
  const { tf, native } = backend;
  const [rows] = x.shape;
  return customGradient<[Tensor2D], [Tensor1D], Tensor2D>(
    tf,
    (x) => ({ value: gatherRows(backend, x, indices), saved: [indices] }),
    (dy, indices) => [
      native
        ? tf.unsortedSegmentSum(dy, indices, rows)
        : // WebAssembly has no scatter-add: the same sum as a product with the one-hot matrix.
          tf.matMul(oneHot(tf, indices, rows), dy, true, false),
    ],
  )(x);
}
