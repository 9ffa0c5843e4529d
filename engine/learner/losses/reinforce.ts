import type { ReinforceObjective } from '../../../core/algorithms/objective.ts';
import { stopGradient } from '../tensorflow/custom-gradient.ts';
import { importanceWeight } from './importance-weight.ts';
import { given } from './loss.ts';
import type { TokenLoss } from './loss.ts';
import { tokenWeights } from './token-weights.ts';

/**
 * REINFORCE (Williams 1992), to be minimized: the sum over tokens of −w · ρ · A · log p. ρ, a constant of
 * exp(log p − samplerLogprobs), corrects for samples of other weights than those that learn (truncated importance sampling,
 * Ionides 2008; as in V-trace, Espeholt et al. 2018); without it several updates on one batch are biased.
 */
export const reinforceLoss = (settings: ReinforceObjective): TokenLoss => ({
  kind: 'token',
  key: JSON.stringify(settings),
  from: { temperature: settings.temperature, topK: settings.topK },
  ofSamples: true,
  clips: false,
  needs: ['advantages', ...(settings.importanceCap > 0 ? (['samplerLogprobs'] as const) : [])],
  movesAll: (settings.entropyBonus ?? 0) !== 0,
  reads: () => ['advantages', ...(settings.importanceCap > 0 ? (['samplerLogprobs'] as const) : [])],
  entropyBonus: settings.entropyBonus ?? 0,
  weights: (batch, sequences) => tokenWeights(batch, sequences, settings),
  compute: (tf, { logprobs, weights, advantages, samplerLogprobs }) => {
    let scale = tf.neg(given(advantages));
    if (settings.importanceCap > 0) {
      const fixed = stopGradient(tf, logprobs);
      scale = tf.mul(scale, importanceWeight(tf, fixed, given(samplerLogprobs), settings));
    }
    return {
      loss: tf.sum(tf.mul(tf.mul(scale, logprobs), weights)),
      kl: tf.zerosLike(logprobs),
      clipped: tf.zerosLike(logprobs),
    };
  },
});
