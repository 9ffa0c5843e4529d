import type { Alternative, AskedBeams, SampleRequest, SampleResult } from '../policy.ts';
import type { Batch } from './batch.ts';
import { BeamSearch } from './beam-search.ts';
import type { CachedSequence } from './kv-cache.ts';
import { mostNewTokens, Sequence } from './sequence.ts';

/** Somebody who waits for a beam. */
interface Taker {
  request: SampleRequest & { beams: AskedBeams };
  /** The episode ended while this turn ran. */
  released: boolean;
}

export interface FoundTurn {
  id: number;
  result: SampleResult;
  /** Under which the cache is kept; null: nobody goes on with it. */
  session: string | null;
  cache: CachedSequence;
}

/**
 * A beam search in the scheduler's batch, where each beam is a sequence. All beams are fed a token in the same round, so
 * the search goes on once a round. Those who ask for beams of the same turn wait for the same search.
 */
export class TurnSearch {
  /** Equal for those who wait for the same search. */
  static key({
    prefix,
    continuation,
    mask,
    maxNewTokens,
    stopTokens,
    sampling,
    beams,
  }: SampleRequest): string {
    const { width, groups, diversity } = beams!;
    const asked = [maxNewTokens, stopTokens, sampling.temperature, width, groups, diversity];
    return JSON.stringify([prefix, continuation, mask, asked]);
  }

  /** Places that it may take in the batch. */
  readonly width: number;
  /** Feeds what is before the turn. */
  readonly root: Sequence;
  private readonly beams: BeamSearch<Sequence>;
  private readonly takers = new Map<number, Taker>();
  private readonly maxPositions: number;
  private sequences: readonly Sequence[];
  /** What the sequences say of the next token: of all of them, or of none. */
  private readonly likeliest = new Map<Sequence, Alternative[]>();
  /** Of each group's best finished beam. */
  private readonly caches = new Map<number, CachedSequence>();

  constructor(request: SampleRequest, maxPositions: number) {
    const limit = mostNewTokens(request, maxPositions);
    this.width = request.beams!.width;
    this.maxPositions = maxPositions;
    this.root = new Sequence(0, request, maxPositions, this);
    this.sequences = [this.root];
    this.beams = new BeamSearch(request.beams!, { stopTokens: request.stopTokens, limit, root: this.root });
  }

  add(id: number, request: SampleRequest): void {
    this.takers.set(id, { request: request as Taker['request'], released: false });
  }

  /** One waits no longer. When nobody does, its sequences leave the batch. */
  abort(id: number): void {
    this.takers.delete(id);
    if (this.isAborted) for (const sequence of this.sequences) sequence.aborted = true;
  }

  get isAborted(): boolean {
    return this.takers.size === 0;
  }

  release(session: string): void {
    for (const taker of this.takers.values()) if (taker.request.session === session) taker.released = true;
  }

  /** A sequence has been fed: which tokens are likeliest to follow. */
  told(sequence: Sequence, likeliest: Alternative[]): void {
    this.likeliest.set(sequence, likeliest);
  }

  /** Once all beams have been fed, takes the next position: sequences leave the batch, go on, or are copied. */
  grow(batch: Batch): void {
    if (this.likeliest.size === 0) return;
    const finished = this.beams.grow(this.likeliest);
    this.likeliest.clear();
    for (const { group, seat } of finished) {
      const { seats, slot } = batch.seatOf(seat);
      const rows = seats.block.extract(slot);
      this.caches.set(group, { rows, prefix: seat.request.prefix, ...seat.history });
    }
    const going: Sequence[] = [];
    for (const sequence of this.sequences) {
      const [first, ...others] = this.beams.open.filter(({ seat }) => seat === sequence);
      for (const beam of others) {
        const copy = sequence.fork(this.maxPositions);
        batch.fork(sequence, copy);
        going.push(copy);
        beam.seat = copy;
        copy.extend(beam.tokens.at(-1)!);
      }
      if (first) {
        going.push(sequence);
        sequence.extend(first.tokens.at(-1)!);
      } else {
        const { seats, slot } = batch.seatOf(sequence);
        batch.remove(seats, slot);
      }
    }
    this.sequences = going;
  }

  get over(): boolean {
    return this.beams.over;
  }

  /** The beam of each who waits, once the search is over. */
  found(): FoundTurn[] {
    return [...this.takers].map(([id, { request, released }]) => {
      const { group, tokens, logprobs, finish } = this.beams.chosen(request.beams.group);
      return {
        id,
        result: { tokens, samplerLogprobs: logprobs, finish },
        session: released ? null : request.session,
        cache: this.caches.get(group)!,
      };
    });
  }
}
