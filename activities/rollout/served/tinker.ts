import { z } from 'zod';
import { GradusError } from '../../../core/errors.ts';
import type { Json } from '../../../core/json/json.ts';
import { TinkerClient } from '../../training/tinker/client.ts';
import { eitherWire, readSample } from '../../training/tinker/protobuf.ts';
import { LEAVING, TrainedModel } from '../../training/tinker/trained-model.ts';
import { finishOf, logprob, tokenId } from './answers.ts';
import { badAnswer, LOADING_SECONDS } from './connection.ts';
import type { ServerConnection } from './connection.ts';
import type { ServerApi, ServerRequest } from './server-api.ts';
import { timeoutSignal } from '../../../core/timeout-signal.ts';

const sampled = eitherWire(
  z.object({
    sequences: z
      .array(z.object({ tokens: z.array(tokenId), logprobs: z.array(logprob), stop_reason: z.string() }))
      .length(1),
    prompt_logprobs: z.array(logprob.nullable()).nullish(),
  }),
  readSample,
);
const models = z.object({ supported_models: z.array(z.object({ model_name: z.string() })).nonempty() });
const info = z.object({ base_model: z.string(), lora_rank: z.int() });

/** An adapter as this client has the server hold it. */
interface Held {
  model: TrainedModel;
  /** The path of a saved sampler: what it names never changes. */
  sampler: string;
}

/**
 * A server of Tinker's API. Each adapter is a model of this client's own, that loads what a learner saved,
 * is saved for samplers and is never trained. So it lives as long as the client says so, whatever becomes of the learner's,
 * and SkyRL 0.3.0, which samples from a path by putting it into its model, cannot put it into one that is trained.
 */
export function tinker(connection: ServerConnection): ServerApi {
  const client = new TinkerClient(connection, LOADING_SECONDS);
  const { url } = connection;
  const held = new Map<string, Held>();

  const forget = (name: string): void => {
    held.get(name)?.model.close();
    held.delete(name);
  };

  async function draw(request: ServerRequest, scores: boolean, signal: AbortSignal) {
    const { model, tokens, maxNewTokens, stopTokens, temperature, seed } = request;
    const adapter = held.get(model);
    const body: { [key: string]: Json } = {
      type: 'sample',
      ...(adapter ? { model_path: adapter.sampler } : { base_model: model }),
      prompt: { chunks: [{ type: 'encoded_text', tokens: [...tokens] }] },
      num_samples: 1,
      prompt_logprobs: scores,
      sampling_params: {
        max_tokens: maxNewTokens,
        temperature,
        top_p: 1,
        top_k: -1,
        seed,
        ...(stopTokens.length > 0 && { stop: [...stopTokens] }),
      },
    };
    try {
      return (await client.compute('/api/v1/asample', body, sampled, signal)).result;
    } catch (error) {
      if (error instanceof GradusError && error.type === 'server-forgot') forget(model);
      throw error;
    }
  }

  return {
    healthy: async (signal) => void (await connection.ask('/api/v1/healthz', null, signal, 10)),
    models: (signal) =>
      ofPolicy(async () => {
        const asked = await client.ask('/api/v1/get_server_capabilities', null, models, signal);
        return asked.supported_models.map(({ model_name: name }) => name);
      }),
    // What it says of a model is its name alone.
    says: async () => ({}),
    sample: (request, signal) =>
      ofPolicy(async () => {
        const [drawn] = (await draw(request, false, signal)).sequences;
        const { tokens, logprobs, stop_reason: reason } = drawn!;
        return { tokens, logprobs, finish: finishOf(url, reason), versions: null };
      }),
    score: (request, signal) =>
      ofPolicy(async () => {
        const asked = { ...request, maxNewTokens: 1, stopTokens: [], temperature: 1, seed: 0 };
        const { prompt_logprobs: given } = await draw(asked, true, signal);
        // The API has a place for the first token; SkyRL 0.3.0 has none.
        const values = given?.length === request.tokens.length ? given.slice(1) : (given ?? []);
        return values.map((value, i) => {
          if (value === null) throw badAnswer(`${url}: no log-prob of token ${i + 1} of a prompt`);
          return value;
        });
      }),
    loadAdapter: (name, path, signal) =>
      ofPolicy(async () => {
        if (held.has(name)) return;
        const asked = { tinker_path: path };
        const saved = await client.ask('/api/v1/weights_info', asked, info, signal);
        const server = { baseModel: saved.base_model, knowsSequence: false, wire: 'json' as const };
        const model = await TrainedModel.open(
          client,
          server,
          { lora: { rank: saved.lora_rank }, seed: 0, from: { state: path, steps: 0 }, trains: false },
          signal,
        );
        try {
          held.set(name, { model, sampler: await model.saveForSampler(name, signal) });
        } catch (error) {
          await model.unload(timeoutSignal(LEAVING));
          throw error;
        }
      }),
    unloadAdapter: async (name, signal) => {
      const old = held.get(name);
      held.delete(name);
      await old?.model.unload(signal);
    },
    reload: () => Promise.reject(new GradusError('policy', 'server-request', `${url} holds adapters alone`)),
  };
}

/** What is said of a learner's server, of the policy's. */
async function ofPolicy<T>(ask: () => Promise<T>): Promise<T> {
  try {
    return await ask();
  } catch (error) {
    if (!(error instanceof GradusError) || error.boundary !== 'learner') throw error;
    const { message, retryable, retryAfterSeconds } = error;
    const type = TYPES[error.type] ?? error.type;
    throw new GradusError('policy', type, message, { retryable, retryAfterSeconds, cause: error });
  }
}

const TYPES: Record<string, string> = {
  'server-forgot': 'unknown-model',
  'server-refused': 'server-request',
  'server-failed': 'server-answer',
};
