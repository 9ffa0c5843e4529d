import { GradusError } from '../../core/errors.ts';
import type { BlobRef } from '../../core/refs.ts';
import { SEQUENCE_STREAMS, TOKEN_STREAMS } from '../../engine/learner/contract.ts';
import type { SequenceStream, TrainBatch } from '../../engine/learner/contract.ts';
import { readSafetensors, writeSafetensors } from '../../engine/safetensors/safetensors.ts';
import type { Codec } from '../codec.ts';
import type { CallOptions, StoredObject, ObjectStore } from '../objects/object-store.ts';
import { tensorOf } from '../sampler-logprobs.ts';

const FORMAT = 'gradus.batch/2';

type Named = [name: string, data: Int32Array | Float32Array | undefined];

const ofSequences = (stream: SequenceStream): string => `sequence.${stream}`;

/** Arrays laid end to end: array i is `ids[offsets[i] .. offsets[i + 1])`. */
interface Ragged {
  ids: Int32Array;
  offsets: Int32Array;
}

/** A batch as one safetensors object, as docs/batch.md describes it. Throws GradusError('store', 'invalid-batch'). */
export function encodeBatch(batch: TrainBatch): Uint8Array {
  check(batch);
  const { tokens, offsets, mask, kept } = batch;
  const updates = endToEnd(batch.updates);
  const arrays: Named[] = [
    ['tokens', tokens],
    ['offsets', offsets],
    ['mask', mask],
    ...TOKEN_STREAMS.map((name): Named => [tensorOf(name), batch.streams[name]]),
    ...SEQUENCE_STREAMS.map((name): Named => [ofSequences(name), batch.sequences[name]]),
    ['kept', kept?.ids],
    ['kept_offsets', kept?.offsets],
    ['updates', updates.ids],
    ['update_offsets', updates.offsets],
  ];
  const tensors = arrays.flatMap(([name, data]) =>
    data ? [[name, { shape: [data.length], data }] as const] : [],
  );
  return writeSafetensors(new Map(tensors), { format: FORMAT });
}

/** Throws GradusError('store', 'invalid-batch') for a file that is no batch, or says more than a batch may. */
export function decodeBatch(bytes: Uint8Array): TrainBatch {
  const { tensors, metadata } = readSafetensors(bytes);
  if (metadata['format'] !== FORMAT)
    throw invalid(`its format is ${metadata['format'] ?? 'not given'}, not ${FORMAT}`);
  const unread = new Map(tensors);
  const whole = (name: string): Int32Array => {
    const data = unread.get(name)?.data;
    unread.delete(name);
    if (data instanceof Int32Array) return data;
    throw invalid(`${name} of dtype I32 is missing`);
  };
  const real = (name: string): Float32Array => {
    const data = unread.get(name)?.data;
    unread.delete(name);
    if (data instanceof Float32Array) return data;
    throw invalid(`${name} of dtype F32 is missing`);
  };
  const named = <Name extends string>(names: readonly Name[], tensorOfName: (name: Name) => string) =>
    Object.fromEntries(
      names.filter((name) => tensors.has(tensorOfName(name))).map((name) => [name, real(tensorOfName(name))]),
    ) as Partial<Record<Name, Float32Array>>;
  const batch: TrainBatch = {
    tokens: whole('tokens'),
    offsets: whole('offsets'),
    mask: real('mask'),
    streams: named(TOKEN_STREAMS, tensorOf),
    sequences: named(SEQUENCE_STREAMS, ofSequences),
    ...(tensors.has('kept') && { kept: { ids: whole('kept'), offsets: whole('kept_offsets') } }),
    updates: apart({ ids: whole('updates'), offsets: whole('update_offsets') }),
  };
  if (unread.size > 0) throw invalid(`${[...unread.keys()].join(' and ')}: nobody would read it`);
  check(batch);
  return batch;
}

const batches: Codec<TrainBatch> = {
  contentType: 'application/octet-stream',
  encode: encodeBatch,
  decode: decodeBatch,
};

/** First writer wins: the batch that counts is the one that comes back. */
export const putBatch = (
  store: ObjectStore,
  key: string,
  batch: TrainBatch,
  options: CallOptions = {},
): Promise<StoredObject<TrainBatch>> => store.putIfAbsent(key, batches, batch, options);

export const loadBatch = (store: ObjectStore, ref: BlobRef, options: CallOptions = {}): Promise<TrainBatch> =>
  store.read(ref, batches, options);

function endToEnd(arrays: readonly Int32Array[]): Ragged {
  const offsets = new Int32Array(arrays.length + 1);
  arrays.forEach(({ length }, i) => (offsets[i + 1] = offsets[i]! + length));
  const ids = new Int32Array(offsets.at(-1)!);
  arrays.forEach((array, i) => ids.set(array, offsets[i]));
  return { ids, offsets };
}

function apart(ragged: Ragged): Int32Array[] {
  const { ids, offsets } = ragged;
  if (!ascends(offsets, ids.length)) throw invalid(`update_offsets must ascend from 0 to ${ids.length}`);
  return Array.from({ length: offsets.length - 1 }, (_, i) => ids.subarray(offsets[i], offsets[i + 1]));
}

function check({ tokens, offsets, mask, streams, sequences, kept, updates }: TrainBatch): void {
  const total = tokens.length;
  if (!ascends(offsets, total)) throw invalid(`offsets must ascend from 0 to ${total}`);
  const count = offsets.length - 1;
  for (const [name, { length }] of Object.entries({ mask, ...streams }))
    if (length !== total) throw invalid(`${total} tokens, but ${length} in ${name}`);
  for (const [name, { length }] of Object.entries(sequences))
    if (length !== count) throw invalid(`${count} sequences, but ${length} in ${name}`);
  const stranger = updates.flatMap((update) => [...update]).find((one) => one < 0 || one >= count);
  if (stranger !== undefined)
    throw invalid(`an update has sequence ${stranger}, and they end with ${count - 1}`);
  if (kept && (kept.offsets.length !== total + 1 || !ascends(kept.offsets, kept.ids.length))) {
    throw invalid(`kept_offsets must be ${total + 1} and ascend from 0 to ${kept.ids.length}`);
  }
}

const ascends = (offsets: Int32Array, to: number): boolean =>
  offsets[0] === 0 &&
  offsets.at(-1) === to &&
  offsets.every((offset, i) => i === 0 || offset >= offsets[i - 1]!);

const invalid = (what: string): GradusError =>
  new GradusError('store', 'invalid-batch', `not a training batch: ${what}. Assemble it again`);
