import { RandomStream } from '../../core/random.ts';
import type { GrpoSettings, SupervisedSettings, TrainBatch, TrainSettings } from './contract.ts';

/**
 * Sequence indices of every update of a step, in order: each epoch shuffles by `seed` and cuts into as few minibatches
 * as hold all, as equal as can be. Adam makes a move of the same size out of each, so a rest of one sequence would move
 * the weights as far as hundreds do, along its own noise.
 */
export function minibatches(sequences: number, settings: TrainSettings): number[][] {
  const updates: number[][] = [];
  for (let epoch = 0; epoch < settings.epochs; epoch++) {
    const order = new RandomStream(settings.seed, 'learner', 'minibatches', epoch).shuffle(
      Array.from({ length: sequences }, (_, i) => i),
    );
    const parts = Math.ceil(sequences / settings.minibatch);
    const start = (part: number): number => Math.floor((part * sequences) / parts);
    for (let part = 0; part < parts; part++) updates.push(order.slice(start(part), start(part + 1)));
  }
  return updates;
}

/**
 * Whether a sequence has a gradient: one whose every advantage is zero has none, unless the KL to the reference pulls
 * at it. It need not be computed then, and counts in its minibatch all the same.
 */
export function movesWeights(
  { offsets, advantages }: TrainBatch,
  objective: SupervisedSettings | GrpoSettings,
  sequence: number,
): boolean {
  if (objective.kind === 'grpo' && objective.beta > 0) return true;
  return advantages.subarray(offsets[sequence], offsets[sequence + 1]).some((advantage) => advantage !== 0);
}

/** The batch's mask [total] where one of these sequences is, 0 elsewhere. */
export function maskOf({ offsets, mask }: TrainBatch, sequences: readonly number[]): Float32Array {
  const own = new Float32Array(mask.length);
  for (const sequence of sequences) {
    const [start, end] = [offsets[sequence]!, offsets[sequence + 1]!];
    own.set(mask.subarray(start, end), start);
  }
  return own;
}

/**
 * The weight of each token [total] in the mean that a minibatch's loss is: 1 / masked tokens of the minibatch
 * (`token`, and supervised), 1 / (sequences · masked tokens of its sequence) (`sequence`), or 1 / (sequences ·
 * maxCompletionTokens) (`dr-grpo`); 0 where the mask is 0.
 */
export function lossWeights(
  batch: TrainBatch,
  sequences: readonly number[],
  { aggregation, maxCompletionTokens }: Pick<GrpoSettings, 'aggregation' | 'maxCompletionTokens'>,
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
