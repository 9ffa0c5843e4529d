import { RandomStream } from '../../core/random.ts';
import type { TrainBatch, TrainSettings } from './contract.ts';
import type { Loss } from './losses/loss.ts';

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
 * Whether a sequence has a gradient: one whose every advantage is zero has none, unless the loss moves the weights by
 * something else. It need not be computed then, and counts in its minibatch all the same.
 */
export const movesWeights = (
  { offsets, advantages }: TrainBatch,
  { movesAll }: Pick<Loss, 'movesAll'>,
  sequence: number,
): boolean =>
  movesAll ||
  advantages.subarray(offsets[sequence], offsets[sequence + 1]).some((advantage) => advantage !== 0);

/** The batch's mask [total] where one of these sequences is, 0 elsewhere. */
export function maskOf({ offsets, mask }: TrainBatch, sequences: readonly number[]): Float32Array {
  const own = new Float32Array(mask.length);
  for (const sequence of sequences) {
    const [start, end] = [offsets[sequence]!, offsets[sequence + 1]!];
    own.set(mask.subarray(start, end), start);
  }
  return own;
}
