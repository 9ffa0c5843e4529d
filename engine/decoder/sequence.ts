import { uniform } from '../../core/random.ts';
import type { Alternative, SampleRequest, SampleResult, SamplingSettings } from '../policy.ts';
import type { CachedSequence } from './kv-cache.ts';
import type { TurnSearch } from './turn-search.ts';
import { piecesOf } from './pieces.ts';
import { MOST_TOP_K } from '../../core/names.ts';

/** What was drawn, its log-prob, and the ids that it was drawn among, none where nothing was cut. */
export interface SequenceToken {
  token: number;
  logprob: number;
  kept: number[];
  /** Where the request asks for them. */
  alternatives?: Alternative[];
}

/** One request while it is being decoded: which of its tokens have been fed, and what was sampled. A search has several. */
export class Sequence {
  readonly id: number;
  readonly request: SampleRequest;
  /** Says what follows its tokens, and when it is over; absent: it draws them itself. */
  readonly search: TurnSearch | undefined;
  /** Nobody waits for the answer any more. */
  aborted = false;
  /** The episode ended while this turn ran: its cache is not worth keeping. */
  released = false;
  /** Tokens after the prefix that lie in the cache. */
  fed = 0;
  /** Sizes of the pieces in which the continuation is fed, and how many of them lie in the cache. */
  private readonly pieces: number[];
  private done = 0;
  private readonly tokens: number[] = [];
  private readonly samplerLogprobs: number[] = [];
  private readonly kept: number[][] = [];
  private readonly alternatives: Alternative[][] = [];
  private readonly limit: number;

  constructor(id: number, request: SampleRequest, maxPositions: number, search?: TurnSearch) {
    this.id = id;
    this.request = request;
    this.search = search;
    this.pieces = piecesOf(request.continuation.length, request.mask);
    this.limit = mostNewTokens(request, maxPositions);
  }

  /** Another one that has got as far, and whose cache is a copy. */
  fork(maxPositions: number): Sequence {
    const copy = new Sequence(this.id, this.request, maxPositions, this.search);
    copy.fed = this.fed;
    copy.done = this.done;
    copy.tokens.push(...this.tokens);
    return copy;
  }

  /**
   * Takes over what a cache holds of these very pieces. The last piece of the continuation is always fed again, for its
   * logits; a cache that shares only a beginning with the request is used up to the piece where they part.
   */
  reuse(known: CachedSequence): void {
    const { prefix, continuation } = this.request;
    // The same tokens in other pieces are other bits: the prefix has to be the same prefix.
    if (known.prefix.length !== prefix.length || prefix.some((token, i) => known.prefix[i] !== token)) return;
    for (const [i, size] of this.pieces.entries()) {
      const end = this.fed + size;
      if (known.pieces[i] !== size || end >= continuation.length) return;
      for (let at = this.fed; at < end; at++) if (known.tokens[at] !== continuation[at]) return;
      this.fed = end;
      this.done = i + 1;
    }
  }

  /** What lies in the cache after the prefix. */
  get history(): Pick<CachedSequence, 'tokens' | 'pieces'> {
    const tokens = [...this.request.continuation, ...this.tokens].slice(0, this.fed);
    const sampled = Math.max(0, this.done - this.pieces.length);
    const pieces = [...this.pieces.slice(0, this.done), ...Array.from({ length: sampled }, () => 1)];
    return { tokens, pieces };
  }

  /** How many tokens are fed next, as one piece. */
  get size(): number {
    return this.pieces[this.done] ?? 1;
  }

  /** The tokens that are fed next. */
  get next(): readonly number[] {
    const { continuation } = this.request;
    return this.fed < continuation.length
      ? continuation.slice(this.fed, this.fed + this.size)
      : [this.tokens[this.fed - continuation.length]!];
  }

  /** The answer, once the turn is over. */
  get result(): SampleResult | undefined {
    if (this.search) return undefined;
    const { tokens, samplerLogprobs, kept, alternatives } = this;
    const { topK } = this.request.sampling;
    const sampled = {
      tokens,
      samplerLogprobs,
      ...(topK > 0 && topK <= MOST_TOP_K && { kept }),
      ...(this.request.alternatives && { alternatives }),
    };
    const last = tokens.at(-1);
    if (last !== undefined && this.request.stopTokens.includes(last)) return { ...sampled, finish: 'stop' };
    return tokens.length >= this.limit ? { ...sampled, finish: 'length' } : undefined;
  }

  /** What is to be drawn when `next` has been fed: nothing while history is fed. */
  get wanted(): { sampling: SamplingSettings; u: number } | undefined {
    return this.search || !this.isNew ? undefined : this.draw;
  }

  /** Whether a new token follows `next`, for somebody who waits for it. */
  get isNew(): boolean {
    return !this.aborted && this.fed + this.size >= this.request.continuation.length;
  }

  /** The draw of the token that follows everything so far. */
  get draw(): { sampling: SamplingSettings; u: number } {
    const { continuation, sampling, key } = this.request;
    return { sampling, u: uniform(key, continuation.length + this.tokens.length) };
  }

  /** `next` has been fed; `drawn` is what was drawn where something was wanted. */
  advance(drawn: SequenceToken | undefined): void {
    this.fed += this.size;
    this.done++;
    if (drawn !== undefined) this.append(drawn);
  }

  /** What its search has it fed next. */
  extend(token: number): void {
    this.tokens.push(token);
  }

  append({ token, logprob, kept, alternatives }: SequenceToken): void {
    this.tokens.push(token);
    this.samplerLogprobs.push(logprob);
    this.kept.push(kept);
    if (alternatives) this.alternatives.push(alternatives);
  }
}

/** Tokens that a turn may have: what is asked for and the model has room for. */
export const mostNewTokens = (
  { prefix, continuation, maxNewTokens }: SampleRequest,
  maxPositions: number,
): number => Math.max(0, Math.min(maxNewTokens, maxPositions - prefix.length - continuation.length));
