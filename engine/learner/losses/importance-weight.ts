import type { Tensor1D } from '@tensorflow/tfjs';
import type { ImportanceCorrection } from '../../../core/algorithms/objective.ts';
import type { Tf } from '../tensorflow/backend.ts';

/** exp(target − rollout) [N], truncated or masked by `importanceRule`, `importanceCap` > 0; `target` needs no gradient. */
export function importanceWeight(
  tf: Tf,
  target: Tensor1D,
  rollout: Tensor1D,
  { importanceCap, importanceRule = 'truncate' }: ImportanceCorrection,
): Tensor1D {
  const weight = tf.exp<Tensor1D>(tf.sub(target, rollout));
  if (importanceRule === 'truncate') return tf.minimum(weight, importanceCap);
  const within = tf.logicalAnd(
    tf.greaterEqual(weight, 1 / importanceCap),
    tf.lessEqual(weight, importanceCap),
  );
  return tf.where<Tensor1D>(within, weight, tf.zerosLike(weight));
}
