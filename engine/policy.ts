import type { RandomKey } from '../core/random.ts';
import type { BeamsSpec } from '../core/schema/beams.ts';
import type { RolloutDtype } from '../core/schema/policy.ts';
import type { LoraAdapter } from './lora/adapter.ts';
import type { ModelConfig, Weights } from '../core/model/config.ts';

export interface SamplingSettings {
  /** Divides the logits; 0 means greedy. */
  temperature: number;
  /** Keep the k most likely tokens; 0 keeps all. */
  topK: number;
  /** Keep the smallest set of most likely tokens whose probability reaches topP; 1 keeps all. */
  topP: number;
}

/**
 * One turn of one episode. The history is given whole each time, so a policy may forget whatever it cached and
 * still answer the same, to the bit: what is sampled depends on nothing but the fields of this request and the
 * weights, never on what else is in the batch.
 */
export interface SampleRequest {
  /** Names the episode, so that its cache can be kept from turn to turn. */
  session: string;
  /** Prompt tokens; requests with equal prefixes share one prefill. Never empty. */
  prefix: readonly number[];
  /** All tokens after the prompt so far: sampled ones and observations. */
  continuation: readonly number[];
  /**
   * [continuation], 1 where a token was sampled and 0 where it was observed: observations may be fed in larger pieces, which
   * are other bits. Absent: all were sampled.
   */
  mask?: readonly number[];
  /** Stop after this many new tokens at the latest. */
  maxNewTokens: number;
  /** Sampling one of these ids ends the turn; it is the last id returned. */
  stopTokens: readonly number[];
  sampling: SamplingSettings;
  /** The draw for the token at position p of the continuation is `uniform(key, p)`. */
  key: RandomKey;
  /** What is told beside each token that is drawn, for people: what is drawn does not depend on it. */
  alternatives?: AskedAlternatives;
  /** The turn is searched for, and not drawn: neither `key` nor top-k and top-p say anything, which must cut nothing. */
  beams?: AskedBeams;
}

/** A beam search of which the best beam of one group is wanted; of all groups where none is named. */
export interface AskedBeams extends BeamsSpec {
  group?: number;
}

/** So many of the likeliest tokens, and `also` these, whatever they are. */
export interface AskedAlternatives {
  most: number;
  also?: readonly number[];
}

/** A token that could have been drawn. */
export interface Alternative {
  token: number;
  /**
   * Log-probability in nats under softmax(logits / temperature) over the whole vocabulary, whatever top-k and top-p cut; at
   * temperature 0 that of temperature 1.
   */
  logprob: number;
}

export interface SampleResult {
  tokens: number[];
  /**
   * Log-probability in nats of each token under softmax(logits / temperature), over what top-k and top-p after it keep.
   * Top-p without top-k leaves it as it is.
   */
  samplerLogprobs: number[];
  /** With top-k of 64 at most: the ids that each token was drawn among, ascending; empty where nothing was cut. */
  kept?: number[][];
  /** Where they were asked for: likeliest first, and then the drawn one and those asked for, where they are none of them. */
  alternatives?: Alternative[][];
  /** Why the turn ended. */
  finish: 'stop' | 'length';
  /** Where a server has sampled it. */
  served?: ServedBy;
}

/** Which server has sampled something, and with which weights. */
export interface ServedBy {
  /** Its address. */
  server: string;
  /** Digest of the weights that were asked for. */
  weights: string;
  /** Which weights made the tokens from `start` up to `end`, as the server says it; absent where it does not. */
  versions?: { version: string; start: number; end: number }[];
}

/** Something that continues episodes. The local decoder is one; a server or a recording are others. */
export interface Policy {
  sample(request: SampleRequest, signal?: AbortSignal): Promise<SampleResult>;
  /** The episode is over: its cache can be reused. */
  release(session: string): void;
  close(): Promise<void>;
}

/** What samples one turn of an episode whose turns have weights of their own, for as long as that takes. */
export interface TurnPolicy {
  policy: Policy;
  /** SHA-256 of its weights; absent: those that the episode has begun with. */
  weights?: string;
  release(): void;
}

/** A policy that runs a model on this machine. */
export interface LocalPolicy extends Policy {
  /**
   * Computes with these weights, and an adapter merged into its own copy of them, from now on; `version` is what they
   * are known by. Its copy is rounded to `dtype`, float32 where there is none. Sessions that are open keep nothing of the old
   * weights: they are fed again.
   */
  load(
    version: string,
    config: ModelConfig,
    weights: Weights,
    adapter?: LoraAdapter,
    dtype?: RolloutDtype,
  ): Promise<void>;
  readonly version: string | undefined;
}
