import { GradusError } from '../core/errors.ts';
import type { BlobRef } from '../core/refs.ts';
import type { TrainBatch } from '../engine/learner/contract.ts';
import { readSafetensors, writeSafetensors } from '../engine/safetensors/safetensors.ts';
import type { Codec } from './codec.ts';
import type { CallOptions, Kept, ObjectStore } from './object-store.ts';

const FORMAT = 'gradus.batch/1';

/** A batch as one safetensors object: `tokens`, `offsets` and, where there are such, `late`, `kept` and `kept_offsets` I32; `mask`, `advantages` and `rollout_logprobs` F32. */
export function encodeBatch(batch: TrainBatch): Uint8Array {
  check(batch);
  const { tokens, offsets, mask, advantages, rolloutLogprobs, late, kept } = batch;
  const arrays = {
    tokens,
    offsets,
    mask,
    advantages,
    rollout_logprobs: rolloutLogprobs,
    ...(late && { late }),
    ...(kept && { kept: kept.ids, kept_offsets: kept.offsets }),
  };
  const tensors = Object.entries(arrays).map(
    ([name, data]): [string, { shape: number[]; data: Int32Array | Float32Array }] => [
      name,
      { shape: [data.length], data },
    ],
  );
  return writeSafetensors(new Map(tensors), { format: FORMAT });
}

/** Throws GradusError('store', 'invalid-batch') for a file that is no batch. */
export function decodeBatch(bytes: Uint8Array): TrainBatch {
  const { tensors, metadata } = readSafetensors(bytes);
  if (metadata['format'] !== FORMAT)
    throw invalid(`its format is ${metadata['format'] ?? 'not given'}, not ${FORMAT}`);
  const whole = (name: string): Int32Array => {
    const data = tensors.get(name)?.data;
    if (data instanceof Int32Array) return data;
    throw invalid(`${name} of dtype I32 is missing`);
  };
  const real = (name: string): Float32Array => {
    const data = tensors.get(name)?.data;
    if (data instanceof Float32Array) return data;
    throw invalid(`${name} of dtype F32 is missing`);
  };
  const batch: TrainBatch = {
    tokens: whole('tokens'),
    offsets: whole('offsets'),
    mask: real('mask'),
    advantages: real('advantages'),
    rolloutLogprobs: real('rollout_logprobs'),
    ...(tensors.has('late') && { late: whole('late') }),
    ...(tensors.has('kept') && { kept: { ids: whole('kept'), offsets: whole('kept_offsets') } }),
  };
  check(batch);
  return batch;
}

const batches: Codec<TrainBatch> = {
  contentType: 'application/octet-stream',
  encode: encodeBatch,
  decode: decodeBatch,
};

/** First writer wins: the batch that counts is the one that comes back. */
export const keepBatch = (
  store: ObjectStore,
  key: string,
  batch: TrainBatch,
  options: CallOptions = {},
): Promise<Kept<TrainBatch>> => store.keep(key, batches, batch, options);

export const loadBatch = (store: ObjectStore, ref: BlobRef, options: CallOptions = {}): Promise<TrainBatch> =>
  store.read(ref, batches, options);

function check({ tokens, offsets, mask, advantages, rolloutLogprobs, kept }: TrainBatch): void {
  const total = tokens.length;
  if ([mask, advantages, rolloutLogprobs].some((array) => array.length !== total)) {
    throw invalid(
      `${total} tokens, but ${mask.length} in mask, ${advantages.length} in advantages, ${rolloutLogprobs.length} in rollout_logprobs`,
    );
  }
  if (!ascends(offsets, total)) throw invalid(`offsets must ascend from 0 to ${total}`);
  if (!kept) return;
  if (kept.offsets.length !== total + 1 || !ascends(kept.offsets, kept.ids.length)) {
    throw invalid(`kept_offsets must be ${total + 1} and ascend from 0 to ${kept.ids.length}`);
  }
}

const ascends = (offsets: Int32Array, to: number): boolean =>
  offsets[0] === 0 &&
  offsets.at(-1) === to &&
  offsets.every((offset, i) => i === 0 || offset >= offsets[i - 1]!);

const invalid = (what: string): GradusError =>
  new GradusError('store', 'invalid-batch', `not a training batch: ${what}. Assemble it again`);
