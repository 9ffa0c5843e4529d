import type { ServedPolicySpec } from '../../../core/schema/policy.ts';
import type { ServerConnection } from './connection.ts';
import { sglang } from './sglang.ts';
import { tinker } from './tinker.ts';
import { vllm } from './vllm.ts';

/** Which weights sampled the tokens from `start` up to `end` of an answer. */
export interface VersionSpan {
  version: string;
  start: number;
  end: number;
}

/** What one request asks to be sampled. Every field that changes what is sampled is sent, so no server default counts. */
export interface ServerRequest {
  /** The base model, or the adapter by its name. */
  model: string;
  tokens: readonly number[];
  maxNewTokens: number;
  stopTokens: readonly number[];
  /** 0 is greedy. */
  temperature: number;
  seed: number;
  /** Digest of the weights: a prefix that other weights computed is never found again. */
  salt: string;
}

export interface ServerSample {
  tokens: number[];
  /** Nats, under softmax(logits / temperature) over the whole vocabulary. */
  logprobs: number[];
  finish: 'stop' | 'length';
  /** null where the server does not say it. */
  versions: VersionSpan[] | null;
}

/**
 * What Gradus asks of one server. Each method throws GradusError('policy', …): `server-away`, retryable, for what passes;
 * `unknown-model`, retryable, for weights that the server does not hold; `server-request` for what it refuses from anyone;
 * `server-answer`, retryable, for an answer that is none.
 */
export interface ServerApi {
  healthy(signal: AbortSignal): Promise<void>;
  /** Names of models and adapters, the base first. */
  models(signal: AbortSignal): Promise<string[]>;
  /** What it says of a model that it began with: its path, and a checksum of its weights where it computes one. */
  says(model: string, signal: AbortSignal): Promise<Record<string, string>>;
  sample(request: ServerRequest, signal: AbortSignal): Promise<ServerSample>;
  /** [T − 1] log-probs of each token after the first, at temperature 1. */
  score(request: Pick<ServerRequest, 'model' | 'tokens' | 'salt'>, signal: AbortSignal): Promise<number[]>;
  /** Does nothing where an adapter of this name is loaded. */
  loadAdapter(name: string, path: string, signal: AbortSignal): Promise<void>;
  unloadAdapter(name: string, signal: AbortSignal): Promise<void>;
  /** New weights of the model, and nothing left of what the old ones have computed. Requests in flight are aborted. */
  reload(path: string, version: string, signal: AbortSignal): Promise<void>;
}

export const serverApi = (server: ServedPolicySpec['server'], connection: ServerConnection): ServerApi =>
  ({ vllm, sglang, tinker })[server](connection);
