import type { MeanOf } from '../../../core/algorithms/objective.ts';
import type { TrainBatch } from '../contract.ts';

/**
 * The weight of each token [total] in the mean that a minibatch's loss is: 1 / masked tokens of the minibatch
 * (`token`, and supervised), 1 / (sequences · masked tokens of its sequence) (`sequence`), or 1 / (sequences ·
 * maxCompletionTokens) (`dr-grpo`); 0 where the mask is 0. Branches of one episode count as one sequence.
 */
export function tokenWeights(
  batch: TrainBatch,
  sequences: readonly number[],
  { aggregation, maxCompletionTokens }: MeanOf,
): Float32Array {
  const counts = sequences.map((sequence) => {
    let count = 0;
    for (let i = batch.offsets[sequence]!; i < batch.offsets[sequence + 1]!; i++) count += batch.mask[i]!;
    return count;
  });
  const total = counts.reduce((sum, count) => sum + count, 0);
  const episodes = sequences.map((sequence) => {
    const episode = batch.sequences.episode?.[sequence] ?? -1;
    return episode < 0 ? -1 - sequence : episode;
  });
  const countOf = new Map<number, number>();
  episodes.forEach((episode, n) => countOf.set(episode, (countOf.get(episode) ?? 0) + counts[n]!));
  const nonEmpty = [...countOf.values()].filter((count) => count > 0).length;
  const weights = new Float32Array(batch.tokens.length);
  sequences.forEach((sequence, n) => {
    const share = {
      token: 1 / total,
      sequence: 1 / (nonEmpty * countOf.get(episodes[n]!)!),
      'dr-grpo': 1 / (countOf.size * maxCompletionTokens),
    }[aggregation];
    for (let i = batch.offsets[sequence]!; i < batch.offsets[sequence + 1]!; i++) {
      if (batch.mask[i] === 1) weights[i] = share;
    }
  });
  return weights;
}
