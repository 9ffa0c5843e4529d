import type { Tensor4D } from '@tensorflow/tfjs';
import type { ModelConfig } from '../../../core/model/config.ts';
import { rotaryTables } from '../../rope.ts';
import type { Tf } from '../tensorflow/backend.ts';
import { customGradient } from '../tensorflow/custom-gradient.ts';

/** Cosines [1, T, 1, D], and sines of the same shape with the sign of rotate-half folded in: [−sin, sin]. */
export interface RopeTables {
  cos: Tensor4D;
  sin: Tensor4D;
}

/** Tables for positions 0 … T − 1. */
export function ropeTables(
  tf: Tf,
  length: number,
  config: Pick<ModelConfig, 'headSize' | 'ropeTheta' | 'ropeScaling'>,
): RopeTables {
  const { headSize } = config;
  const half = headSize / 2;
  const tables = rotaryTables(config, length);
  const cos = new Float32Array(length * headSize);
  const sin = new Float32Array(length * headSize);
  for (let t = 0; t < length; t++) {
    for (let i = 0; i < half; i++) {
      const at = t * headSize + i;
      cos[at] = cos[at + half] = tables.cos[t * half + i]!;
      sin[at + half] = tables.sin[t * half + i]!;
      sin[at] = -sin[at + half]!;
    }
  }
  const shape: [number, number, number, number] = [1, length, 1, headSize];
  return { cos: tf.tensor4d(cos, shape), sin: tf.tensor4d(sin, shape) };
}

/** Rotary embedding (Su et al. 2021, eq. 34) of x [B, T, H, D], halves rotated as in Hugging Face. */
export function rope(tf: Tf, x: Tensor4D, tables: RopeTables): Tensor4D {
  const [batch, length, heads, headSize] = x.shape;
  const half = headSize / 2;
  const size = [batch, length, heads, half];
  const swap = (x: Tensor4D) =>
    tf.concat([tf.slice(x, [0, 0, 0, half], size), tf.slice(x, [0, 0, 0, 0], size)], 3);
  return customGradient<[Tensor4D], [Tensor4D, Tensor4D], Tensor4D>(
    tf,
    (x) => ({
      value: tf.add(tf.mul(x, tables.cos), tf.mul(swap(x), tables.sin)),
      saved: [tables.cos, tables.sin],
    }),
    // A rotation's transpose turns the other way (and keeps the scale that YaRN folds into it).
    (dy, cos, sin) => [tf.sub(tf.mul(dy, cos), tf.mul(swap(dy), sin))],
  )(x);
}
