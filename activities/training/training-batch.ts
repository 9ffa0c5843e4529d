import type { TrainingSample } from '../../core/algorithms/training-sample.ts';
import type { UpdatePlan } from '../../core/requests/batch.ts';
import type { SamplingMask, SequenceStream, TokenStream, TrainBatch } from '../../engine/learner/contract.ts';
import { updatesOf } from './updates.ts';

/** Lays sequences end to end, and writes down which of them each update has. */
export function packBatch(sequences: readonly TrainingSample[], updates: UpdatePlan): TrainBatch {
  const total = sequences.reduce((sum, { tokens }) => sum + tokens.length, 0);
  const names = Object.keys(
    sequences[0]?.streams ?? { advantages: [], samplerLogprobs: [] },
  ) as TokenStream[];
  const streams = Object.fromEntries(names.map((name) => [name, new Float32Array(total)]));
  const batch: TrainBatch = {
    tokens: new Int32Array(total),
    offsets: new Int32Array(sequences.length + 1),
    mask: new Float32Array(total),
    streams,
    sequences: marksOf(sequences),
    ...(sequences.some(({ kept }) => kept) && { kept: packSamplingMask(sequences) }),
    updates: updatesOf(
      unitsOf(sequences),
      updates,
      sequences.some(({ episode }) => episode !== undefined) ? 1 : undefined,
    ),
  };
  let at = 0;
  sequences.forEach((sequence, i) => {
    batch.tokens.set(sequence.tokens, at);
    batch.mask.set(sequence.mask, at);
    for (const name of names) streams[name]!.set(sequence.streams[name]!, at);
    at += sequence.tokens.length;
    batch.offsets[i + 1] = at;
  });
  return batch;
}

/** Masked tokens, without sequences that others are only compared with, such as those behind another prompt for the z₀ of KTO. */
export function trainedTokens({ offsets, mask, sequences: { label } }: TrainBatch): number {
  let sum = 0;
  for (let sequence = 0; sequence + 1 < offsets.length; sequence++) {
    if (label?.[sequence] === 0) continue;
    for (let at = offsets[sequence]!; at < offsets[sequence + 1]!; at++) sum += mask[at]!;
  }
  return sum;
}

/** What is said of each sequence, as far as anything is said of one. */
function marksOf(sequences: readonly TrainingSample[]): TrainBatch['sequences'] {
  const marks: Record<SequenceStream, (sequence: TrainingSample) => number | undefined> = {
    late: ({ late }) => late && 1,
    pair: ({ pair }) => pair,
    label: ({ label }) => label,
    teacher: ({ teacher }) => teacher,
    episode: ({ episode }) => episode,
    staleness: ({ staleness }) => staleness,
  };
  const unsaid: Record<SequenceStream, number> = {
    late: 0,
    pair: -1,
    label: 0,
    teacher: -1,
    episode: -1,
    staleness: -1,
  };
  return Object.fromEntries(
    (Object.keys(marks) as SequenceStream[])
      .filter((name) => sequences.some((sequence) => marks[name](sequence) !== undefined))
      .map((name) => [
        name,
        Float32Array.from(sequences, (sequence) => marks[name](sequence) ?? unsaid[name]),
      ]),
  );
}

/** Places of the sequences that must be in one update: the two of a pair, the branches of an episode, and what stays together, else each alone. */
function unitsOf(sequences: readonly TrainingSample[]): number[][] {
  const units: number[][] = [];
  const ofNumber = new Map<number, number[]>();
  sequences.forEach(({ pair, together, episode }, i) => {
    const number = pair ?? together ?? episode;
    const begun = number === undefined ? undefined : ofNumber.get(number);
    if (begun) begun.push(i);
    else {
      const unit = [i];
      units.push(unit);
      if (number !== undefined) ofNumber.set(number, unit);
    }
  });
  return units;
}

function packSamplingMask(sequences: readonly TrainingSample[]): SamplingMask {
  const sets = sequences.flatMap(({ tokens, kept }) => kept ?? tokens.map((): number[] => []));
  const offsets = new Int32Array(sets.length + 1);
  sets.forEach((set, i) => (offsets[i + 1] = offsets[i]! + set.length));
  return { ids: Int32Array.from(sets.flat()), offsets };
}
