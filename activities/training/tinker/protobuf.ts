import protobuf from 'protobufjs';
import { z } from 'zod';
import { messageOf } from '../../../core/errors.ts';

/**
 * What Tinker's API says in protobuf: fields and numbers of the descriptors in PyPI's tinker 0.38.0 (tinker_public.proto),
 * those that Gradus reads or writes. Arrays are bytes, little-endian.
 */
const SCHEMA = `
  syntax = "proto3";
  enum DType { UNSPECIFIED = 0; FLOAT32 = 1; INT64 = 2; INT32 = 3; BFLOAT16 = 4; }
  message EncodedText { bytes tokens = 1; }
  message Chunk { EncodedText encoded_text = 1; }
  message Tensor { bytes dense = 1; DType dtype = 3; repeated int64 shape = 4; }
  message Datum { repeated Chunk model_input = 1; map<string, Tensor> loss_fn_inputs = 2; }
  message Setting { double number = 1; }
  message ForwardBackwardRequest {
    string model_id = 1; int32 seq_id = 2; repeated Datum data = 3; string loss_fn = 4;
    map<string, double> loss_fn_config = 5; bool forward_only = 6; map<string, Setting> loss_fn_config_v2 = 7;
  }
  message BatchedTensor { bytes data = 1; bytes offsets = 2; DType dtype = 3; repeated int64 trailing_shape = 4; }
  message ArrayRecord { map<string, BatchedTensor> fields = 2; }
  message ForwardBackwardOutput { repeated ArrayRecord loss_fn_outputs = 2; }
  enum StopReason { stop = 0; length = 1; }
  message SampledSequence { StopReason stop_reason = 1; bytes tokens = 2; bytes logprobs = 3; }
  message SampleResponse { repeated SampledSequence sequences = 1; optional bytes prompt_logprobs = 2; }
`;
const { root } = protobuf.parse(SCHEMA, { keepCase: true });
export const messages = {
  request: root.lookupType('ForwardBackwardRequest'),
  pass: root.lookupType('ForwardBackwardOutput'),
  sample: root.lookupType('SampleResponse'),
};

/** Of a datum, by the JSON wire. */
export type TinkerTensor = { data: number[]; dtype: 'int64' | 'float32'; shape: number[] };

export type TinkerDatum = {
  model_input: { chunks: { type: 'encoded_text'; tokens: number[] }[] };
  loss_fn_inputs: Record<string, TinkerTensor>;
};

/** What a pass reads. */
export type TinkerPass = {
  data: TinkerDatum[];
  loss_fn: string;
  loss_fn_config?: Record<string, number>;
};

/** The body of `/api/v1/forward_backward`. */
export function passRequest(
  place: { model_id: string; seq_id?: number; forward_only: boolean },
  { data, loss_fn, loss_fn_config: config = {} }: TinkerPass,
): Uint8Array {
  const settings = Object.entries(config);
  return messages.request
    .encode({
      ...place,
      loss_fn,
      data: data.map(({ model_input, loss_fn_inputs }) => ({
        model_input: model_input.chunks.map(({ tokens }) => ({
          encoded_text: { tokens: bytesOf(Int32Array.from(tokens)) },
        })),
        loss_fn_inputs: Object.fromEntries(
          Object.entries(loss_fn_inputs).map(([name, tensor]) => [name, tensorOf(tensor)]),
        ),
      })),
      // Older servers read the first, newer ones the second.
      loss_fn_config: config,
      loss_fn_config_v2: Object.fromEntries(settings.map(([name, number]) => [name, { number }])),
    })
    .finish();
}

const tensorOf = ({ data, dtype, shape }: TinkerTensor) =>
  dtype === 'int64'
    ? { dense: bytesOf(BigInt64Array.from(data, BigInt)), dtype: 2, shape }
    : { dense: bytesOf(Float32Array.from(data)), dtype: 1, shape };

const bytesOf = ({ buffer, byteOffset, byteLength }: ArrayBufferView): Uint8Array =>
  new Uint8Array(buffer as ArrayBuffer, byteOffset, byteLength);

/** An answer by either wire: `schema` is of the JSON wire. */
export const eitherWire = <T extends z.ZodType>(schema: T, read: (bytes: Uint8Array) => unknown) =>
  z.preprocess((answer, context) => {
    if (!(answer instanceof Uint8Array)) return answer;
    try {
      return read(answer);
    } catch (error) {
      context.addIssue({ code: 'custom', message: `no protobuf of this answer: ${messageOf(error)}` });
      return z.NEVER;
    }
  }, schema);

/** Log-probs of a pass as the JSON wire has them, `null` where one is not finite. Throws where bytes are no such message. */
export function readPass(bytes: Uint8Array): unknown {
  const { loss_fn_outputs: records } = decoded(messages.pass, bytes) as {
    loss_fn_outputs: { fields: { logprobs?: BatchedTensor } }[];
  };
  return {
    loss_fn_outputs: records.flatMap(({ fields: { logprobs } }) =>
      logprobs ? piecesOf(logprobs).map((data) => ({ logprobs: { data } })) : [],
    ),
  };
}

/** Samples as the JSON wire has them. Throws where bytes are no such message. */
export function readSample(bytes: Uint8Array): unknown {
  const { sequences, prompt_logprobs: prompt } = decoded(messages.sample, bytes) as {
    sequences: { stop_reason: string; tokens: Uint8Array; logprobs: Uint8Array }[];
    prompt_logprobs?: Uint8Array;
  };
  return {
    sequences: sequences.map(({ tokens, logprobs, stop_reason }) => ({
      tokens: [...new Int32Array(aligned(tokens))],
      logprobs: finite(new Float32Array(aligned(logprobs))),
      stop_reason,
    })),
    ...(prompt !== undefined && { prompt_logprobs: finite(new Float32Array(aligned(prompt))) }),
  };
}

interface BatchedTensor {
  data: Uint8Array;
  offsets: Uint8Array;
  dtype: string;
}

/** What a tensor has of each datum; `offsets` are in bytes. */
function piecesOf({ data, offsets, dtype }: BatchedTensor): (number | null)[][] {
  const size = { FLOAT32: 4, BFLOAT16: 2 }[dtype];
  if (size === undefined) throw new Error(`log-probs of type ${dtype}`);
  const bytes = aligned(data);
  const values =
    size === 4
      ? new Float32Array(bytes)
      : new Float32Array(Uint32Array.from(new Uint16Array(bytes), (half) => half << 16).buffer);
  const places = [...new BigInt64Array(aligned(offsets))].map(Number);
  const inOrder = places.every((place, i) => place % size === 0 && place >= (places[i - 1] ?? 0));
  if (places[0] !== 0 || !inOrder || places.at(-1) !== data.length) throw new Error('offsets that are none');
  const bounds = places.map((place) => place / size);
  return bounds.slice(1).map((end, i) => finite(values.subarray(bounds[i], end)));
}

/** A copy, for views of wider numbers begin where these do. */
const aligned = (bytes: Uint8Array): ArrayBuffer => Uint8Array.from(bytes).buffer;

const finite = (values: Float32Array): (number | null)[] =>
  Array.from(values, (value) => (Number.isFinite(value) ? value : null));

const decoded = (message: protobuf.Type, bytes: Uint8Array): unknown =>
  message.toObject(message.decode(bytes), { defaults: true, longs: Number, enums: String });
