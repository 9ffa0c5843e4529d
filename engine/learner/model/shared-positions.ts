import type { Tensor1D, Tensor2D } from '@tensorflow/tfjs';
import type { Tf } from '../tensorflow/backend.ts';
import { customGradient } from '../tensorflow/custom-gradient.ts';

/**
 * N positions shown at B · T places, several of which may show one: the position of each place [B · T], and one of the
 * places of each position [N]; int32.
 */
export interface SharedPositions {
  positionOf: Tensor1D;
  placeOf: Tensor1D;
}

/** Rows of x [M, d] at `indices` [K], int32: [K, d]. A row's gradient is the sum over its copies. */
export function rowsAt(tf: Tf, x: Tensor2D, indices: Tensor1D): Tensor2D {
  const [rows] = x.shape;
  return customGradient<[Tensor2D], [Tensor1D], Tensor2D>(
    tf,
    (x) => ({ value: tf.gather(x, indices), saved: [indices] }),
    (dy, indices) => [tf.unsortedSegmentSum(dy, indices, rows)],
  )(x);
}
