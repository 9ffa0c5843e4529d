import type { ModelConfig } from '../../../core/model/config.ts';
import type { TensorflowBackend } from '../tensorflow/backend.ts';
import type { ComputeSettings, SamplingMask, ScoredBatch } from '../contract.ts';
import { FirstFit } from './first-fit.ts';
import { byPrompt, sharePrefixes } from './shared-prefixes.ts';

/**
 * Ragged sequences laid into rows of equal length. Several short ones share a row (attention keeps them apart), so
 * little is padding; row lengths and row counts come from small sets, because every new shape is traced once.
 */

/**
 * Where everything of one micro-batch came from. Attention sees rows · length places; tokens, targets and sources are of
 * the N positions that are computed: as many, unless some are `shared`.
 */
export interface PackedRows {
  rows: number;
  length: number;
  tokens: Int32Array;
  /** The token that each position predicts, and where it stands in the batch; −1: nothing counts here. */
  targets: Int32Array;
  sources: Int32Array;
  /** [rows · length]: tells the sequences of one row apart; padding has a segment of its own. */
  segments: Int32Array;
  shared?: SharedPlaces;
}

/** Which position each place shows [rows · length], and the place that shows a position [N]; counted within each core's part. */
export interface SharedPlaces {
  positionOf: Int32Array;
  placeOf: Int32Array;
}

/** What a place costs beside a position, where positions are shared: attention's inputs are copied there and added up. */
const COPY = 1 / 8;

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
  { threads, native }: Pick<TensorflowBackend, 'threads' | 'native'>,
  { vocabSize }: Pick<ModelConfig, 'vocabSize'>,
  { microBatchTokens, sharePrompts }: Pick<ComputeSettings, 'microBatchTokens' | 'sharePrompts'>,
  { tokens, offsets, mask }: Pick<ScoredBatch, 'tokens' | 'offsets' | 'mask'>,
  all: readonly number[],
): (chosen: readonly number[]) => PackedRows[] {
  const length = rowLength(offsets, all);
  // A row for each core at the least, unless somebody has said how much memory there is.
  const positions = microBatchTokens || Math.max(positionsFor(vocabSize), threads * length);
  return (chosen) => {
    const apart = packRows(tokens, offsets, chosen, length, positions, threads);
    // WebAssembly would add gradients up by products with one-hot matrices.
    if (!sharePrompts || !native) return apart;
    const ordered = byPrompt(tokens, offsets, mask, chosen);
    const shared = layRows(tokens, offsets, ordered, length, positions, threads).map((rows) =>
      sharePrefixes(rows, mask, vocabSize, threads),
    );
    return positionsIn(shared) + COPY * placesIn(shared) < placesIn(apart) ? shared : apart;
  };
}

const placesIn = (packed: readonly PackedRows[]): number =>
  packed.reduce((sum, { rows, length }) => sum + rows * length, 0);

export const positionsIn = (packed: readonly PackedRows[]): number =>
  packed.reduce((sum, { tokens }) => sum + tokens.length, 0);

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
  const byLength = sequences.toSorted((a, b) => positionsOf(offsets, b) - positionsOf(offsets, a));
  return layRows(tokens, offsets, byLength, length, positions, parts);
}

/** Likewise, first fit in the order that is given. */
function layRows(
  tokens: Int32Array,
  offsets: Int32Array,
  ordered: readonly number[],
  length: number,
  positions: number,
  parts: number,
): PackedRows[] {
  const laid = ordered.filter((sequence) => positionsOf(offsets, sequence) > 0);
  const contents: number[][] = [];
  const rows = new FirstFit(laid.length, length);
  for (const sequence of laid) (contents[rows.put(positionsOf(offsets, sequence))] ??= []).push(sequence);
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

/** Per-token values [total] of the batch at the rows' positions [N]; 0 where nothing counts. */
export function gather(values: Float32Array, rows: PackedRows): Float32Array {
  return Float32Array.from(rows.sources, (source) => (source < 0 ? 0 : values[source]!));
}

/**
 * The sets that the rows' targets were sampled among, [N, most]: a set of fewer repeats its first id, and
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
