import { GradusError } from '../../core/errors.ts';
import type { BlobRef } from '../../core/refs.ts';
import type { TrainBatch } from '../../engine/learner/contract.ts';
import { readSafetensors, writeSafetensors } from '../../engine/safetensors/safetensors.ts';
import type { CallOptions, ObjectStore } from './object-store.ts';

const FORMAT = 'gradus.batch/1';

/** A batch as one safetensors object: `tokens` and `offsets` I32; `mask`, `advantages` and `rollout_logprobs` F32. */
export function encodeBatch(batch: TrainBatch): Uint8Array {
  check(batch);
  const { tokens, offsets, mask, advantages, rolloutLogprobs } = batch;
  const arrays = { tokens, offsets, mask, advantages, rollout_logprobs: rolloutLogprobs };
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
  };
  check(batch);
  return batch;
}

/** First writer wins: the batch that counts is what the returned ref has. */
export function saveBatch(
  store: ObjectStore,
  key: string,
  batch: TrainBatch,
  options: CallOptions = {},
): Promise<BlobRef> {
  return store.put(key, encodeBatch(batch), options);
}

export async function loadBatch(
  store: ObjectStore,
  ref: BlobRef,
  options: CallOptions = {},
): Promise<TrainBatch> {
  return decodeBatch(await store.get(ref, options));
}

function check({ tokens, offsets, mask, advantages, rolloutLogprobs }: TrainBatch): void {
  const total = tokens.length;
  if ([mask, advantages, rolloutLogprobs].some((array) => array.length !== total)) {
    throw invalid(
      `${total} tokens, but ${mask.length} in mask, ${advantages.length} in advantages, ${rolloutLogprobs.length} in rollout_logprobs`,
    );
  }
  const ascending = offsets.every((offset, i) => i === 0 || offset >= offsets[i - 1]!);
  if (offsets[0] !== 0 || offsets.at(-1) !== total || !ascending) {
    throw invalid(`offsets must ascend from 0 to ${total}`);
  }
}

const invalid = (what: string): GradusError =>
  new GradusError('store', 'invalid-batch', `not a training batch: ${what}. Assemble it again`);
