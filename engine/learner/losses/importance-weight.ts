import type { Tensor1D } from '@tensorflow/tfjs';
import type { ImportanceCorrection } from '../../../core/algorithms/objective.ts';
import type { Tf } from '../tensorflow/backend.ts';
import { customGradient } from '../tensorflow/custom-gradient.ts';

/** exp(target − samplerLogprobs) [N], truncated or masked by `importanceRule`, `importanceCap` > 0; `target` needs no gradient. */
export function importanceWeight(
  tf: Tf,
  target: Tensor1D,
  samplerLogprobs: Tensor1D,
  { importanceCap, importanceRule = 'truncate' }: ImportanceCorrection,
): Tensor1D {
  if (importanceRule === 'truncate') {
    return tf.minimum(tf.exp<Tensor1D>(tf.sub(target, samplerLogprobs)), importanceCap);
  }
  // In one piece, for a comparison has no gradient, not even of zero.
  return customGradient<[Tensor1D, Tensor1D], [], Tensor1D>(
    tf,
    (target, samplerLogprobs) => {
      const weight = tf.exp<Tensor1D>(tf.sub(target, samplerLogprobs));
      const within = tf.logicalAnd(
        tf.greaterEqual(weight, 1 / importanceCap),
        tf.lessEqual(weight, importanceCap),
      );
      return { value: tf.where<Tensor1D>(within, weight, tf.zerosLike(weight)), saved: [] };
    },
    (dy) => [tf.zerosLike(dy), tf.zerosLike(dy)],
  )(target, samplerLogprobs);
}
