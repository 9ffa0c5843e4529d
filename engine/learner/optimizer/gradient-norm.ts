import type { Tensor } from '@tensorflow/tfjs';
import type { Backend } from '../backend.ts';

/** Global L2 norm over all gradients. */
export function gradientNorm(backend: Backend, gradients: Tensor[]): number {
  const { tf, native } = backend;
  const half = tf.tidy(() => {
    const parts = gradients.map((gradient) =>
      native ? native.halfSquaredNorm(gradient) : tf.mul(tf.sum(tf.square(gradient)), 0.5),
    );
    return tf.addN(parts);
  });
  const [value] = half.dataSync();
  half.dispose();
  return Math.sqrt(2 * value!);
}

/** Gradients scaled so that their norm is `largest` at most (Pascanu et al. 2013, algorithm 1); 0 leaves them alone. */
export function clipGradients(
  backend: Backend,
  gradients: Tensor[],
  norm: number,
  largest: number,
): Tensor[] {
  if (largest <= 0 || norm <= largest) return gradients;
  const scale = largest / norm;
  return gradients.map((gradient) => {
    const scaled = backend.tf.mul(gradient, scale);
    gradient.dispose();
    return scaled;
  });
}
