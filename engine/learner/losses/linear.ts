import type { OfSamples } from '../../../core/algorithms/objective.ts';
import type { TokenLoss } from './loss.ts';

/** Σ w · log p with the weights that are given: what stands for a coupled loss in the program of its gradient. */
export const linearLoss = (
  from: OfSamples,
): Pick<TokenLoss, 'key' | 'from' | 'reads' | 'entropyBonus' | 'compute'> => ({
  key: JSON.stringify(['linear', from]),
  from,
  reads: () => [],
  entropyBonus: 0,
  compute: (tf, { logprobs, weights }) => ({
    loss: tf.sum(tf.mul(logprobs, weights)),
    kl: tf.zerosLike(logprobs),
    clipped: tf.zerosLike(logprobs),
  }),
});
