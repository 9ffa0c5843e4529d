import type { KeptSets, TrainBatch } from '../../engine/learner/contract.ts';

/** One sequence on its way into a batch; all arrays have the same length. */
export interface TrainSequence {
  tokens: number[];
  mask: number[];
  advantages: number[];
  logprobs: number[];
  /** Ids that each token was sampled among; empty where nothing was cut. Absent: nowhere. */
  kept?: number[][];
  /** Was sampled by an earlier policy than the one that learns from it. */
  late?: true;
}

/** Lays sequences end to end. */
export function packBatch(sequences: readonly TrainSequence[]): TrainBatch {
  const total = sequences.reduce((sum, { tokens }) => sum + tokens.length, 0);
  const batch: TrainBatch = {
    tokens: new Int32Array(total),
    offsets: new Int32Array(sequences.length + 1),
    ...(sequences.some(({ late }) => late) && {
      late: Int32Array.from(sequences, ({ late }) => Number(late === true)),
    }),
    mask: new Float32Array(total),
    advantages: new Float32Array(total),
    rolloutLogprobs: new Float32Array(total),
  };
  if (sequences.some(({ kept }) => kept)) batch.kept = packKept(sequences);
  let at = 0;
  sequences.forEach((sequence, i) => {
    batch.tokens.set(sequence.tokens, at);
    batch.mask.set(sequence.mask, at);
    batch.advantages.set(sequence.advantages, at);
    batch.rolloutLogprobs.set(sequence.logprobs, at);
    at += sequence.tokens.length;
    batch.offsets[i + 1] = at;
  });
  return batch;
}

function packKept(sequences: readonly TrainSequence[]): KeptSets {
  const sets = sequences.flatMap(({ tokens, kept }) => kept ?? tokens.map((): number[] => []));
  const offsets = new Int32Array(sets.length + 1);
  sets.forEach((set, i) => (offsets[i + 1] = offsets[i]! + set.length));
  return { ids: Int32Array.from(sets.flat()), offsets };
}
