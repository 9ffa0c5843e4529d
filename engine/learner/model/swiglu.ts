import type { Tensor2D } from '@tensorflow/tfjs';
import type { Tf } from '../tensorflow/backend.ts';
import { customGradient } from '../tensorflow/custom-gradient.ts';

/** silu(gate) · up (Shazeer 2020, "GLU variants improve transformer", eq. 6), all [N, F]. */
export function swiglu(tf: Tf, gate: Tensor2D, up: Tensor2D): Tensor2D {
  return customGradient<[Tensor2D, Tensor2D], [Tensor2D, Tensor2D, Tensor2D], Tensor2D>(
    tf,
    (gate, up) => {
      const sigmoid = tf.sigmoid(gate);
      const silu = tf.mul<Tensor2D>(gate, sigmoid);
      return { value: tf.mul(silu, up), saved: [up, sigmoid, silu] };
    },
    (dy, up, sigmoid, silu) => {
      // d silu = σ + silu · (1 − σ)
      const dSilu = tf.add(sigmoid, tf.sub(silu, tf.mul(silu, sigmoid)));
      return [tf.mul(tf.mul(dy, up), dSilu), tf.mul(dy, silu)];
    },
  )(gate, up);
}
