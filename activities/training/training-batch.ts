import type { UpdatePlan } from '../../core/requests.ts';
import type { KeptSets, TrainBatch } from '../../engine/learner/contract.ts';
import { updatesOf } from './updates.ts';

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

/** Lays sequences end to end, and writes down which of them each update has. */
export function packBatch(sequences: readonly TrainSequence[], updates: UpdatePlan): TrainBatch {
  const total = sequences.reduce((sum, { tokens }) => sum + tokens.length, 0);
  const streams = { advantages: new Float32Array(total), rollout: new Float32Array(total) };
  const batch: TrainBatch = {
    tokens: new Int32Array(total),
    offsets: new Int32Array(sequences.length + 1),
    mask: new Float32Array(total),
    streams,
    sequences: sequences.some(({ late }) => late)
      ? { late: Float32Array.from(sequences, ({ late }) => Number(late === true)) }
      : {},
    ...(sequences.some(({ kept }) => kept) && { kept: packKept(sequences) }),
    updates: updatesOf(sequences.length, updates),
  };
  let at = 0;
  sequences.forEach((sequence, i) => {
    batch.tokens.set(sequence.tokens, at);
    batch.mask.set(sequence.mask, at);
    streams.advantages.set(sequence.advantages, at);
    streams.rollout.set(sequence.logprobs, at);
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
