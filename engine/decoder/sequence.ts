import { uniform } from '../../core/random.ts';
import type { SampleRequest, SampleResult, SamplingSettings } from '../policy.ts';

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

  /** What is to be drawn when `next` has been fed: nothing while history is fed. */
  get wanted(): { sampling: SamplingSettings; u: number } | undefined {
    return this.aborted || this.fed + 1 < this.request.continuation.length ? undefined : this.draw;
  }

  /** The draw of the token that follows everything so far. */
  get draw(): { sampling: SamplingSettings; u: number } {
    const { continuation, sampling, key } = this.request;
    return { sampling, u: uniform(key, continuation.length + this.tokens.length) };
  }

  /** `next` has been fed; `drawn` is what was drawn where something was wanted. */
  advance(drawn: { token: number; logprob: number } | undefined): void {
    this.fed++;
    if (drawn !== undefined) this.append(drawn);
  }

  append({ token, logprob }: { token: number; logprob: number }): void {
    this.tokens.push(token);
    this.logprobs.push(logprob);
  }
}
