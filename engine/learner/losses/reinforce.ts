import type { ReinforceObjective } from '../../../core/algorithms/objective.ts';
import { stopGradient } from '../tensorflow/custom-gradient.ts';
import { importanceWeight, withinDifference } from './importance-weight.ts';
import { given } from './loss.ts';
import type { TokenLoss } from './loss.ts';
import { tokenWeights } from './token-weights.ts';

/**
 * REINFORCE (Williams 1992), to be minimized: the sum over tokens of −w · ρ · A · log p. ρ, a constant of
 * exp(log p − samplerLogprobs), corrects for samples of other weights than those that learn (truncated importance sampling,
 * Ionides 2008; as in V-trace, Espeholt et al. 2018); without it several updates on one batch are biased. By the rule
 * `difference` it is 0 where DPPO's mask is.
 */
export const reinforceLoss = (settings: ReinforceObjective): TokenLoss => ({
  kind: 'token',
  key: JSON.stringify(settings),
  from: { temperature: settings.temperature, topK: settings.topK },
  ofSamples: true,
  clips: settings.importanceCap > 0 && settings.importanceRule === 'difference',
  needs: ['advantages', ...(settings.importanceCap > 0 ? (['samplerLogprobs'] as const) : [])],
  movesAll: (settings.entropyBonus ?? 0) !== 0,
  reads: () => ['advantages', ...(settings.importanceCap > 0 ? (['samplerLogprobs'] as const) : [])],
  entropyBonus: settings.entropyBonus ?? 0,
  weights: (batch, sequences) => tokenWeights(batch, sequences, settings),
  compute: (tf, { logprobs, weights, advantages, samplerLogprobs }) => {
    let scale = tf.neg(given(advantages));
    let clipped = tf.zerosLike(logprobs);
    if (settings.importanceCap > 0) {
      const [fixed, sampled] = [stopGradient(tf, logprobs), given(samplerLogprobs)];
      scale = tf.mul(scale, importanceWeight(tf, fixed, sampled, settings));
      if (settings.importanceRule === 'difference') {
        const within = withinDifference(tf, fixed, sampled, given(advantages), settings);
        scale = tf.mul(scale, within);
        clipped = tf.sub(1, within);
      }
    }
    return {
      loss: tf.sum(tf.mul(tf.mul(scale, logprobs), weights)),
      kl: tf.zerosLike(logprobs),
      clipped,
    };
  },
});
