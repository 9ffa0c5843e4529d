import type { Tensor1D, Tensor2D } from '@tensorflow/tfjs';
import type { Tf } from '../tensorflow/backend.ts';
import { customGradient } from '../tensorflow/custom-gradient.ts';

/** Root mean square norm (Zhang & Sennrich 2019, eq. 4) of x [N, d] with a gain [d]. */
export function rmsNorm(tf: Tf, x: Tensor2D, gain: Tensor1D, epsilon: number): Tensor2D {
  return customGradient<[Tensor2D, Tensor1D], [Tensor2D, Tensor2D, Tensor1D], Tensor2D>(
    tf,
    (x, gain) => {
      const inverse = tf.rsqrt(tf.add<Tensor2D>(tf.mean(tf.square(x), -1, true), epsilon));
      const normed = tf.mul<Tensor2D>(x, inverse);
      return { value: tf.mul(normed, gain), saved: [normed, inverse, gain] };
    },
    (dy, normed, inverse, gain) => {
      const dNormed = tf.mul(dy, gain);
      const along = tf.mean(tf.mul(dNormed, normed), -1, true);
      return [tf.mul(inverse, tf.sub(dNormed, tf.mul(normed, along))), tf.sum(tf.mul(dy, normed), 0)];
    },
  )(x, gain);
}
