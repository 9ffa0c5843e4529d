import { RandomStream } from '../../core/random.ts';
import type { TrainBatch, TrainSettings } from './contract.ts';

/** Sequence indices of every update of a step, in order: each epoch shuffles by `seed` and cuts into minibatches. */
export function minibatches(sequences: number, settings: TrainSettings): number[][] {
  const updates: number[][] = [];
  for (let epoch = 0; epoch < settings.epochs; epoch++) {
    const order = new RandomStream(settings.seed, 'learner', 'minibatches', epoch).shuffle(
      Array.from({ length: sequences }, (_, i) => i),
    );
    for (let at = 0; at < order.length; at += settings.minibatch) {
      updates.push(order.slice(at, at + settings.minibatch));
    }
  }
  return updates;
}

/**
 * The weight of each token [total] in the mean that a minibatch's loss is: 1 / masked tokens of the minibatch
 * (`token`, and supervised), or 1 / (sequences · masked tokens of its sequence) (`sequence`); 0 where the mask is 0.
 */
export function lossWeights(
  batch: TrainBatch,
  sequences: readonly number[],
  aggregation: 'token' | 'sequence',
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
    const share = aggregation === 'token' ? 1 / total : 1 / (nonEmpty * counts[n]!);
    for (let i = batch.offsets[sequence]!; i < batch.offsets[sequence + 1]!; i++) {
      if (batch.mask[i] === 1) weights[i] = share;
    }
  });
  return weights;
}
