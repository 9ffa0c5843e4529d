import type { Aggregation } from '../../../core/algorithms/objective.ts';
import type { TrainBatch } from '../contract.ts';

/** The mean over tokens that a loss is. */
export interface TokenMean {
  /**
   * `token`: mean over all masked tokens of the minibatch (DAPO); `sequence`: mean over tokens, then over sequences
   * (GRPO); `dr-grpo`: sum over tokens divided by `maxCompletionTokens`, mean over sequences (Liu et al. 2025, TRL's
   * `dr_grpo`), so that a long sequence does not count less by the token.
   */
  aggregation: Aggregation;
  /** What an episode may have after its prompt, in tokens: the constant denominator of `dr-grpo`. */
  maxCompletionTokens: number;
}

/**
 * The weight of each token [total] in the mean that a minibatch's loss is: 1 / masked tokens of the minibatch
 * (`token`, and supervised), 1 / (sequences · masked tokens of its sequence) (`sequence`), or 1 / (sequences ·
 * maxCompletionTokens) (`dr-grpo`); 0 where the mask is 0.
 */
export function tokenWeights(
  batch: TrainBatch,
  sequences: readonly number[],
  { aggregation, maxCompletionTokens }: TokenMean,
): Float32Array {
  const counts = sequences.map((sequence) => {
    let count = 0;
    for (let i = batch.offsets[sequence]!; i < batch.offsets[sequence + 1]!; i++) count += batch.mask[i]!;
    return count;
  });
  const total = counts.reduce((sum, count) => sum + count, 0);
  const nonEmpty = counts.filter((count) => count > 0).length;
  const weights = new Float32Array(batch.tokens.length);
  sequences.forEach((sequence, n) => {
    const share = {
      token: 1 / total,
      sequence: 1 / (nonEmpty * counts[n]!),
      'dr-grpo': 1 / (sequences.length * maxCompletionTokens),
    }[aggregation];
    for (let i = batch.offsets[sequence]!; i < batch.offsets[sequence + 1]!; i++) {
      if (batch.mask[i] === 1) weights[i] = share;
    }
  });
  return weights;
}
