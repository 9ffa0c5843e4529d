import type { Scalar, Tensor1D } from '@tensorflow/tfjs';
import type { Tf } from '../tensorflow/backend.ts';
import { customGradient } from '../tensorflow/custom-gradient.ts';
import type { TokenLoss } from './loss.ts';
import { tokenWeights } from './token-weights.ts';

/**
 * Negative log-likelihood of the masked tokens; negative examples by unlikelihood, −log(1 − p) (Welleck et al. 2020). An
 * example's own weight, its advantage, is a factor of what its tokens weigh.
 */
export const supervised: TokenLoss = {
  kind: 'token',
  key: 'supervised',
  from: { temperature: 1, topK: 0 },
  ofSamples: false,
  clips: false,
  needs: ['advantages'],
  movesAll: false,
  reads: () => [],
  entropyBonus: 0,
  weights: (batch, sequences) =>
    tokenWeights(batch, sequences, { aggregation: 'token', maxCompletionTokens: 0 }).map(
      (weight, i) => weight * batch.streams.advantages![i]!,
    ),
  compute: (tf, { logprobs, weights }) => ({
    loss: supervisedLoss(tf, logprobs, weights),
    kl: tf.zerosLike(logprobs),
    clipped: tf.zerosLike(logprobs),
  }),
};

/** Keeps the gradient of a token finite that the model is sure of and must unlearn. */
export const LEAST_DOUBT = 1e-5;

/**
 * Σ w⁺ · −log p + w⁻ · −log(1 − p): negative log-likelihood of what to imitate, unlikelihood (Welleck et al. 2020,
 * "Neural text generation with unlikelihood training", eq. 4) of what to avoid. Both arguments [N]; `weights` carry
 * mask, sign and normalization.
 */
export function supervisedLoss(tf: Tf, logprobs: Tensor1D, weights: Tensor1D): Scalar {
  const imitate = tf.mul(tf.relu(weights), tf.neg(logprobs));
  const avoid = tf.mul(tf.relu(tf.neg(weights)), unlikelihood(tf, logprobs));
  return tf.sum(tf.add(imitate, avoid));
}

/** −log(1 − p) of log p, with 1 − p held at 1e-5 or more in value and slope. */
function unlikelihood(tf: Tf, logprobs: Tensor1D): Tensor1D {
  return customGradient<[Tensor1D], [Tensor1D, Tensor1D], Tensor1D>(
    tf,
    (logprobs) => {
      const doubt = tf.maximum<Tensor1D>(tf.neg(tf.expm1(logprobs)), LEAST_DOUBT);
      return { value: tf.neg(tf.log(doubt)), saved: [logprobs, doubt] };
    },
    (dy, logprobs, doubt) => [tf.mul(dy, tf.div(tf.exp(logprobs), doubt))],
  )(logprobs);
}
