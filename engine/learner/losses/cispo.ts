import type { Tensor1D } from '@tensorflow/tfjs';
import type { CispoObjective } from '../../../core/algorithms/objective.ts';
import { stopGradient } from '../tensorflow/custom-gradient.ts';
import { given } from './loss.ts';
import type { TokenLoss } from './loss.ts';
import { tokenWeights } from './token-weights.ts';

/**
 * CISPO (MiniMax-M1, 2025, arXiv 2506.13585, eqs. 4 and 5), to be minimized: the sum over tokens of
 * −w · sg(min(r, 1 + high)) · A · log p, r = exp(log p − old), sg: no gradient flows. Without a lower bound, as they ran
 * it. In the first and only update of a step r is 1.
 */
export const cispoLoss = (settings: CispoObjective): TokenLoss => ({
  kind: 'token',
  key: JSON.stringify(settings),
  from: { temperature: settings.temperature, topK: settings.topK },
  ofSamples: true,
  clips: true,
  needs: ['advantages'],
  movesAll: (settings.entropyBonus ?? 0) !== 0,
  reads: (single) => ['advantages', ...(single ? [] : (['old'] as const))],
  entropyBonus: settings.entropyBonus ?? 0,
  weights: (batch, sequences) => tokenWeights(batch, sequences, settings),
  compute: (tf, { logprobs, weights, advantages, old }) => {
    const fixed = stopGradient(tf, logprobs);
    const ratio = tf.exp(tf.sub(fixed, old ?? fixed));
    const most = 1 + settings.clipRatioHigh;
    const scale = tf.neg(tf.mul(tf.minimum(ratio, most), given(advantages)));
    return {
      loss: tf.sum(tf.mul(tf.mul(scale, logprobs), weights)),
      kl: tf.zerosLike(logprobs),
      clipped: tf.cast<Tensor1D>(tf.greater(ratio, most), 'float32'),
    };
  },
});
