import type { TrainBatch } from '../contract.ts';
import type { Loss } from '../losses/loss.ts';

/**
 * Whether a sequence has a gradient: one whose every advantage is zero has none, unless the loss moves the weights by
 * something else. It need not be computed then, and counts in its update all the same.
 */
export const movesWeights = (
  { offsets, streams }: TrainBatch,
  { movesAll }: Pick<Loss, 'movesAll'>,
  sequence: number,
): boolean =>
  movesAll ||
  streams.advantages!.subarray(offsets[sequence], offsets[sequence + 1]).some((advantage) => advantage !== 0);

export const sequencesOf = ({ offsets }: Pick<TrainBatch, 'offsets'>): number[] =>
  Array.from({ length: offsets.length - 1 }, (_, i) => i);

/** Tokens of these sequences. */
export const lengthOf = ({ offsets }: TrainBatch, sequences: readonly number[]): number =>
  sequences.reduce((sum, sequence) => sum + offsets[sequence + 1]! - offsets[sequence]!, 0);

/** The batch's mask [total] where one of these sequences is, 0 elsewhere. */
export function maskOf(
  { offsets, mask }: Pick<TrainBatch, 'offsets' | 'mask'>,
  sequences: readonly number[],
): Float32Array {
  const own = new Float32Array(mask.length);
  for (const sequence of sequences) {
    const [start, end] = [offsets[sequence]!, offsets[sequence + 1]!];
    own.set(mask.subarray(start, end), start);
  }
  return own;
}

/** From the first token of a sequence that counts to behind the last one, by index in the batch; empty where none does. */
export function sampledSpan(
  { offsets, mask }: Pick<TrainBatch, 'offsets' | 'mask'>,
  sequence: number,
): { first: number; end: number } {
  const own = mask.subarray(offsets[sequence], offsets[sequence + 1]);
  const first = own.indexOf(1);
  const start = offsets[sequence]!;
  return first < 0
    ? { first: start, end: start }
    : { first: start + first, end: start + own.lastIndexOf(1) + 1 };
}
