import type { ModelConfig } from '../../../core/model/config.ts';
import type { TensorflowBackend } from '../tensorflow/backend.ts';
import type { ComputeSettings, SamplingMask, ScoredBatch } from '../contract.ts';
import { FirstFit } from './first-fit.ts';

/**
 * Ragged sequences laid into rows of equal length. Several short ones share a row (attention keeps them apart), so
 * little is padding; row lengths and row counts come from small sets, because every new shape is traced once.
 */

/** Where everything of one micro-batch came from. Arrays are [rows · length]. */
export interface PackedRows {
  rows: number;
  length: number;
  tokens: Int32Array;
  /** The token that each position predicts, and where it stands in the batch; −1: nothing counts here. */
  targets: Int32Array;
  sources: Int32Array;
  /** Tells the sequences of one row apart; padding has a segment of its own. */
  segments: Int32Array;
}

/** Positions of a full micro-batch: enough for large matrix products; fewer when the vocabulary is large, for 0.5 GB a copy of the logits. */
export const positionsFor = (vocabSize: number): number =>
  Math.max(1, Math.min(4096, Math.floor(2 ** 27 / vocabSize)));

/** The last token of a sequence predicts nothing and is left out. */
const positionsOf = (offsets: Int32Array, sequence: number): number =>
  Math.max(0, offsets[sequence + 1]! - offsets[sequence]! - 1);

/** The shortest row length on a coarse scale (steps of 16, from 128 on steps of an eighth) that takes each of these sequences. */
export function rowLength(offsets: Int32Array, sequences: readonly number[]): number {
  let longest = 1;
  for (const sequence of sequences) longest = Math.max(longest, positionsOf(offsets, sequence));
  const step = longest <= 128 ? 16 : 2 ** (Math.ceil(Math.log2(longest)) - 4);
  return Math.ceil(longest / step) * step;
}

/** Lays some of `all` these sequences into micro-batches, whose rows take each of them. */
export function packing(
  { threads }: Pick<TensorflowBackend, 'threads'>,
  { vocabSize }: Pick<ModelConfig, 'vocabSize'>,
  { microBatchTokens }: Pick<ComputeSettings, 'microBatchTokens'>,
  { tokens, offsets }: Pick<ScoredBatch, 'tokens' | 'offsets'>,
  all: readonly number[],
): (chosen: readonly number[]) => PackedRows[] {
  const length = rowLength(offsets, all);
  // A row for each core at the least, unless somebody has said how much memory there is.
  const positions = microBatchTokens || Math.max(positionsFor(vocabSize), threads * length);
  return (chosen) => packRows(tokens, offsets, chosen, length, positions, threads);
}

/**
 * The sequences with these indices as micro-batches of about `positions` in rows of `length`: first-fit decreasing, a pure
 * function of the lengths. A micro-batch has full, a half, a quarter or a sixteenth of the rows: the largest that
 * three quarters of would be used. Where there are as many rows as `parts` their number is a multiple of it.
 */
export function packRows(
  tokens: Int32Array,
  offsets: Int32Array,
  sequences: readonly number[],
  length: number,
  positions: number,
  parts = 1,
): PackedRows[] {
  const byLength = sequences
    .filter((sequence) => positionsOf(offsets, sequence) > 0)
    .toSorted((a, b) => positionsOf(offsets, b) - positionsOf(offsets, a));
  const contents: number[][] = [];
  const rows = new FirstFit(byLength.length, length);
  for (const sequence of byLength) (contents[rows.put(positionsOf(offsets, sequence))] ??= []).push(sequence);
  const most = Math.max(1, Math.floor(positions / length));
  const unit = most < parts ? 1 : parts;
  const full = Math.floor(most / unit) * unit;
  const sizes = [1, 2, 4, 16].map((part) => Math.ceil(full / part / unit) * unit);
  const batches: PackedRows[] = [];
  for (let at = 0; at < contents.length;) {
    const left = contents.length - at;
    const count = sizes.find((size) => left >= 0.75 * size) ?? sizes.at(-1)!;
    batches.push(fillRows(tokens, offsets, contents.slice(at, at + count), count, length));
    at += count;
  }
  return batches;
}

function fillRows(
  tokens: Int32Array,
  offsets: Int32Array,
  contents: number[][],
  rows: number,
  length: number,
): PackedRows {
  const size = rows * length;
  const filled: PackedRows = {
    rows,
    length,
    tokens: new Int32Array(size),
    targets: new Int32Array(size),
    sources: new Int32Array(size).fill(-1),
    segments: new Int32Array(size).fill(-1),
  };
  contents.forEach((sequences, row) => {
    let at = row * length;
    sequences.forEach((sequence, segment) => {
      const start = offsets[sequence]!;
      const count = positionsOf(offsets, sequence);
      for (let i = 0; i < count; i++, at++) {
        filled.tokens[at] = tokens[start + i]!;
        filled.targets[at] = tokens[start + i + 1]!;
        filled.sources[at] = start + i + 1;
        filled.segments[at] = segment;
      }
    });
  });
  return filled;
}

/** Per-token values [total] of the batch at the rows' positions; 0 where nothing counts. */
export function gather(values: Float32Array, rows: PackedRows): Float32Array {
  return Float32Array.from(rows.sources, (source) => (source < 0 ? 0 : values[source]!));
}

/**
 * The sets that the rows' targets were sampled among, [rows · length, most]: a set of fewer repeats its first id, and
 * all are −1 where nothing was cut.
 */
export function gatherSamplingMask(
  { ids, offsets }: SamplingMask,
  rows: PackedRows,
  most: number,
): Int32Array {
  const gathered = new Int32Array(rows.sources.length * most).fill(-1);
  rows.sources.forEach((source, position) => {
    if (source < 0) return;
    const set = ids.subarray(offsets[source], offsets[source + 1]);
    if (set.length === 0) return;
    gathered.fill(set[0]!, position * most, (position + 1) * most);
    gathered.set(set, position * most);
  });
  return gathered;
}

/** The way back: values at the rows' positions into an array [total] of the batch. */
export function scatter(values: Float32Array, rows: PackedRows, into: Float32Array): void {
  rows.sources.forEach((source, position) => {
    if (source >= 0) into[source] = values[position]!;
  });
}
