import { messages } from '../../../activities/training/tinker/protobuf.ts';
import type { Answer } from '../policy-server/http.ts';

/** The server's side of Tinker's API in protobuf: passes that are asked for, and answers to those who accept it. */

interface Asked {
  model_id: string;
  seq_id: number;
  forward_only: boolean;
  loss_fn: string;
  loss_fn_config_v2: Record<string, { number: number }>;
  data: {
    model_input: { encoded_text: { tokens: Uint8Array } }[];
    loss_fn_inputs: Record<string, { dense: Uint8Array; dtype: string }>;
  }[];
}

/** A pass as the JSON wire has it, and the route that is for it there. */
export function passOf(bytes: Uint8Array): { route: string; given: Record<string, unknown> } {
  const message = messages.request.decode(bytes);
  const { model_id, seq_id, forward_only, loss_fn, loss_fn_config_v2, data } = messages.request.toObject(
    message,
    { defaults: true, enums: String },
  ) as Asked;
  const clip = Object.entries(loss_fn_config_v2).map(([name, { number }]) => [name, number]);
  const input = {
    loss_fn,
    loss_fn_config: Object.fromEntries(clip) as Record<string, number>,
    data: data.map(({ model_input, loss_fn_inputs }) => ({
      model_input: {
        chunks: model_input.map(({ encoded_text: { tokens } }) => ({
          tokens: [...new Int32Array(Uint8Array.from(tokens).buffer)],
        })),
      },
      loss_fn_inputs: Object.fromEntries(
        Object.entries(loss_fn_inputs).map(([name, { dense, dtype }]) => [
          name,
          { data: numbersOf(dense, dtype) },
        ]),
      ),
    })),
  };
  const route = forward_only ? 'forward' : 'forward_backward';
  return { route, given: { model_id, seq_id, [`${route}_input`]: input } };
}

function numbersOf(bytes: Uint8Array, dtype: string): number[] {
  const { buffer } = Uint8Array.from(bytes);
  if (dtype === 'INT64') return Array.from(new BigInt64Array(buffer), Number);
  if (dtype === 'FLOAT32') return [...new Float32Array(buffer)];
  throw new Error(`a tensor of ${dtype}`);
}

/** Passes and samples in protobuf, and everything else, failures too, as it is. */
export function inProtobuf(route: string, answer: Answer): Answer {
  const body = answer.body as Record<string, unknown>;
  if (answer.status !== 200 || 'error' in body) return answer;
  if (route === 'asample') return { status: 200, body: sampleBytes(body as unknown as Sampled) };
  if (!route.startsWith('forward')) return answer;
  return { status: 200, body: passBytes(body as unknown as Passed) };
}

interface Passed {
  loss_fn_outputs: { logprobs: { data: (number | null)[] } }[];
}

function passBytes({ loss_fn_outputs: outputs }: Passed): Uint8Array {
  if (outputs.length === 0) return messages.pass.encode({}).finish();
  const offsets = [0n];
  for (const { logprobs } of outputs) offsets.push(offsets.at(-1)! + BigInt(4 * logprobs.data.length));
  const logprobs = {
    data: floats(outputs.flatMap(({ logprobs }) => logprobs.data)),
    offsets: new Uint8Array(BigInt64Array.from(offsets).buffer),
    dtype: 1,
  };
  return messages.pass.encode({ loss_fn_outputs: [{ fields: { logprobs } }] }).finish();
}

interface Sampled {
  sequences: { tokens: number[]; logprobs: number[]; stop_reason: 'stop' | 'length' }[];
  prompt_logprobs?: number[];
}

const sampleBytes = ({ sequences, prompt_logprobs: prompt }: Sampled): Uint8Array =>
  messages.sample
    .encode({
      sequences: sequences.map(({ tokens, logprobs, stop_reason }) => ({
        tokens: new Uint8Array(Int32Array.from(tokens).buffer),
        logprobs: floats(logprobs),
        stop_reason: ['stop', 'length'].indexOf(stop_reason),
      })),
      ...(prompt && { prompt_logprobs: floats(prompt) }),
    })
    .finish();

const floats = (values: (number | null)[]): Uint8Array =>
  new Uint8Array(Float32Array.from(values, (value) => value ?? Number.NaN).buffer);
