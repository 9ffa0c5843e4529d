import { uniform } from '../../core/random.ts';
import type { SampleRequest, SampleResult } from '../policy.ts';
import type { Sampler } from './sampler.ts';

/** One request while it is being decoded: which of its tokens have been fed, and what was sampled. */
export class Sequence {
  readonly id: number;
  readonly request: SampleRequest;
  /** Nobody waits for the answer any more. */
  aborted = false;
  /** The episode ended while this turn ran: its cache is not worth keeping. */
  released = false;
  /** Tokens after the prefix that lie in the cache. */
  private fed: number;
  private readonly tokens: number[] = [];
  private readonly logprobs: number[] = [];
  private readonly limit: number;

  constructor(id: number, request: SampleRequest, fed: number, maxPositions: number) {
    this.id = id;
    this.request = request;
    this.fed = fed;
    const room = maxPositions - request.prefix.length - request.continuation.length;
    this.limit = Math.max(0, Math.min(request.maxNewTokens, room));
  }

  /** What lies in the cache after the prefix. */
  get history(): number[] {
    return [...this.request.continuation, ...this.tokens].slice(0, this.fed);
  }

  /** The next token to be fed. */
  get next(): number {
    const { continuation } = this.request;
    return this.fed < continuation.length
      ? continuation[this.fed]!
      : this.tokens[this.fed - continuation.length]!;
  }

  /** The answer, once the turn is over. */
  get result(): SampleResult | undefined {
    const { tokens, logprobs } = this;
    const last = tokens.at(-1);
    if (last !== undefined && this.request.stopTokens.includes(last))
      return { tokens, logprobs, finish: 'stop' };
    return tokens.length >= this.limit ? { tokens, logprobs, finish: 'length' } : undefined;
  }

  /** `next` has been fed and gave the logits [V] at `start`. History is only fed; its end is continued. */
  advance(sampler: Sampler, logits: Float32Array, start: number): void {
    this.fed++;
    if (this.fed >= this.request.continuation.length) this.sample(sampler, logits, start);
  }

  /** Samples the token that follows everything so far. */
  sample(sampler: Sampler, logits: Float32Array, start: number): void {
    const { continuation, sampling, key } = this.request;
    const u = uniform(key, continuation.length + this.tokens.length);
    const { token, logprob } = sampler.draw(logits, start, sampling, u);
    this.tokens.push(token);
    this.logprobs.push(logprob);
  }
}
