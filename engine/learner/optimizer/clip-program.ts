import type { Tensor } from '@tensorflow/tfjs';
import type { TensorflowBackend } from '../tensorflow/backend.ts';
import type { Program } from '../programs/program.ts';

/**
 * In: the gradients. Out: their global L2 norm [], then the gradients scaled so that their norm is `largest` at most
 * (Pascanu et al. 2013, algorithm 1); with `largest` 0 the norm alone. A program, so that the cores share the gradients.
 */
export function clipProgram({ tf, native }: TensorflowBackend, largest: number): Program {
  return {
    key: JSON.stringify(['clip', largest]),
    precision: 'float32',
    compute: (gradients) =>
      tf.tidy(() => {
        const halves = gradients.map((gradient) =>
          native ? native.halfSquaredNorm(gradient) : tf.mul(tf.sum(tf.square(gradient)), 0.5),
        );
        const norm = tf.sqrt(tf.mul(tf.addN(halves), 2));
        if (largest <= 0) return [norm];
        const scale = tf.minimum(1, tf.div(largest, norm));
        return [norm, ...gradients.map((gradient): Tensor => tf.mul(gradient, scale))];
      }),
  };
}
