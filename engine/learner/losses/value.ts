import type { Scalar, Tensor1D } from '@tensorflow/tfjs';
import type { Tf } from '../tensorflow/backend.ts';

/** All [N], in units of reward, 0 where the mask is 0. */
export interface ValueInputs {
  predicted: Tensor1D;
  weights: Tensor1D;
  returns: Tensor1D;
  /** What the critic expected before the step; with a clip only. */
  values?: Tensor1D | undefined;
}

/**
 * Of a critic, to be minimized: Σ w · ½ max((V − R)², (clip(V, V_old − ε, V_old + ε) − R)²), PPO's squared error (Schulman
 * et al. 2017, eq. 9) with the clip of its first implementation (Dhariwal et al. 2017, OpenAI Baselines; Engstrom et al.
 * 2020, section 3); `clip` ε = 0: without. Also 1 where the clip bound [N], for the metrics.
 */
export function valueLoss(
  tf: Tf,
  clip: number,
  { predicted, weights, returns, values }: ValueInputs,
): { loss: Scalar; clipped: Tensor1D } {
  const squares = tf.square<Tensor1D>(tf.sub(predicted, returns));
  const sumOf = (errors: Tensor1D): Scalar => tf.mul(tf.sum(tf.mul(errors, weights)), 0.5);
  if (clip === 0 || !values) return { loss: sumOf(squares), clipped: tf.zerosLike(predicted) };
  const near = tf.maximum<Tensor1D>(
    tf.minimum<Tensor1D>(predicted, tf.add(values, clip)),
    tf.sub(values, clip),
  );
  const held = tf.square<Tensor1D>(tf.sub(near, returns));
  return {
    loss: sumOf(tf.maximum(squares, held)),
    clipped: tf.cast<Tensor1D>(tf.greater(held, squares), 'float32'),
  };
}
