import { GradusError, messageOf } from '../../core/errors.ts';
import type { ModelConfig } from '../../core/model/config.ts';
import type { SampleRequest, SampleResult } from '../policy.ts';
import { LANES } from './backend.ts';
import type { DecoderBackend, LoadedModel } from './backend.ts';
import { Batch, type Seats } from './batch.ts';
import { Draws } from './draws.ts';
import { kvShape } from './kv-block.ts';
import { KvCache, type CachedSequence } from './kv-cache.ts';
import { problemOf } from './request-problem.ts';
import { logprobOf, Sampler } from './sampler.ts';
import { Sequence } from './sequence.ts';
import { mostNewTokens } from './sequence.ts';
import type { SequenceToken } from './sequence.ts';
import { TurnSearch } from './turn-search.ts';

/** Sequences of a block: with fewer, weights are read more often; with more, nothing is gained. */
const SLOTS = 64;

/** How the scheduler answers; each id is answered once, unless it was aborted. */
export interface Replies {
  /** With a load or an unload. */
  done(id: number): void;
  sampled(id: number, result: SampleResult): void;
  failed(id: number, error: GradusError): void;
}

export interface SchedulerSettings {
  cacheBytes: number;
  maxBatch: number;
}

type LoadBackend = (model: LoadedModel) => Promise<DecoderBackend>;

/** Everything that belongs to one set of weights, and goes with it. */
interface Model {
  config: ModelConfig;
  backend: DecoderBackend;
  sampler: Sampler;
  cache: KvCache;
  batch: Batch;
  /** What is drawn where several sequences are fed a piece together. */
  draws: Draws;
  /** Beam searches by what they search for. */
  searches: Map<string, TurnSearch>;
}

type Order =
  | ({ type: 'load'; id: number } & LoadedModel)
  | { type: 'unload'; id: number }
  | { type: 'sample'; id: number; request: SampleRequest };

/**
 * Continuous batching: every request joins the batch as soon as there is room and leaves it when its turn ends.
 *
 * What a request samples does not depend on that, because its tokens are always fed in the same pieces: the prefix
 * as one piece in a batch of its own, then what follows in the pieces of `piecesOf`. Whatever is missing from the cache
 * is fed again in these pieces, so a lost cache shows nowhere but in time.
 *
 * Orders are taken in turn: an unload or a load waits until the requests before it are done, the requests after it wait
 * for it.
 */
export class Scheduler {
  private readonly queue: Order[] = [];
  private readonly replies: Replies;
  private readonly settings: SchedulerSettings;
  private readonly loadBackend: LoadBackend;
  private model: Model | undefined;
  private admitting: Sequence | undefined;
  private running: Promise<void> | undefined;

  constructor(loadBackend: LoadBackend, settings: SchedulerSettings, replies: Replies) {
    this.loadBackend = loadBackend;
    this.settings = settings;
    this.replies = replies;
  }

  /** Takes an order. The promise is that of all work at hand; it rejects when the backend fails. */
  submit(order: Order): Promise<void> {
    this.queue.push(order);
    this.running ??= this.work();
    return this.running;
  }

  abort(id: number): void {
    const index = this.queue.findIndex((order) => order.id === id);
    if (index >= 0) this.queue.splice(index, 1);
    for (const sequence of this.inFlight())
      if (!sequence.search && sequence.id === id) sequence.aborted = true;
    for (const [key, search] of this.model?.searches ?? []) {
      search.abort(id);
      if (search.isAborted) this.model!.searches.delete(key);
    }
  }

  release(session: string): void {
    this.model?.cache.delete(sessionKey(session));
    for (const sequence of this.inFlight())
      if (!sequence.search && sequence.request.session === session) sequence.released = true;
    for (const search of this.model?.searches.values() ?? []) search.release(session);
  }

  /** Drops all work and frees the model. */
  async dispose(): Promise<void> {
    this.queue.length = 0;
    for (const sequence of this.inFlight()) sequence.aborted = true;
    this.model?.searches.clear();
    await this.running;
    await this.unload();
  }

  private async unload(): Promise<void> {
    await this.model?.backend.dispose();
    this.model = undefined;
  }

  private inFlight(): Sequence[] {
    const seated = this.model?.batch.sequences ?? [];
    return this.admitting === undefined ? seated : [...seated, this.admitting];
  }

  private async work(): Promise<void> {
    try {
      for (;;) {
        await this.admit();
        const { model } = this;
        if (model === undefined || model.batch.size === 0) {
          if (this.queue.length === 0) return;
          continue;
        }
        await this.feedPieces(model);
        this.growSearches(model);
        for (const seats of model.batch.seats()) await this.step(model, seats);
        this.growSearches(model);
        model.batch.settle();
      }
    } finally {
      // In the same turn in which the queue was seen empty: an order that comes later begins anew.
      this.running = undefined;
    }
  }

  /** Takes orders from the queue until the batch is full or a load has to wait for it to empty. */
  private async admit(): Promise<void> {
    for (let order = this.queue[0]; order !== undefined; order = this.queue[0]) {
      const active = this.model?.batch.size ?? 0;
      if (active > 0 && (order.type !== 'sample' || !this.hasRoom(order.request))) return;
      this.queue.shift();
      if (order.type === 'load') await this.load(order);
      else if (order.type === 'unload') {
        await this.unload();
        this.replies.done(order.id);
      } else await this.start(order.id, order.request);
    }
  }

  /** A search keeps places for all of its beams, however many there are at a time; who joins one needs none. */
  private hasRoom(request: SampleRequest): boolean {
    const { batch, searches } = this.model!;
    if (request.beams && searches.has(TurnSearch.key(request))) return true;
    let taken = batch.sequences.filter(({ search }) => !search).length;
    for (const { width } of searches.values()) taken += width;
    return taken + (request.beams?.width ?? 1) <= this.settings.maxBatch;
  }

  private async load({ id, config, weights, exclusive }: { id: number } & LoadedModel): Promise<void> {
    // The old model goes first, so that a load that fails cannot be mistaken for one that went well.
    await this.unload();
    try {
      this.model = {
        config,
        backend: await this.loadBackend({ config, weights, exclusive }),
        sampler: new Sampler(config.vocabSize),
        cache: new KvCache(this.settings.cacheBytes),
        batch: new Batch(kvShape(config), SLOTS),
        draws: new Draws(LANES),
        searches: new Map(),
      };
      this.replies.done(id);
    } catch (cause) {
      const message = `The decoder could not take the weights: ${messageOf(cause)}`;
      this.replies.failed(
        id,
        cause instanceof GradusError ? cause : new GradusError('policy', 'load-failed', message, { cause }),
      );
    }
  }

  /** Brings a request's cache up to what can be reused and seats it, or answers it at once. */
  private async start(id: number, request: SampleRequest): Promise<void> {
    const { model } = this;
    if (model === undefined) {
      this.replies.failed(
        id,
        new GradusError('policy', 'no-model', 'The decoder has no weights. Call load() before sample().', {
          retryable: true,
        }),
      );
      return;
    }
    const problem = problemOf(request, model.config);
    if (problem !== undefined) {
      this.replies.failed(id, new GradusError('policy', 'bad-request', problem));
      return;
    }
    const { config, cache, batch, sampler } = model;
    if (request.beams && mostNewTokens(request, config.maxPositions) > 0) {
      await this.search(model, id, request);
      return;
    }
    const known = cache.get(sessionKey(request.session));
    const sequence = new Sequence(id, request, config.maxPositions);
    if (known !== undefined) sequence.reuse(known);
    this.admitting = sequence;
    try {
      if (sequence.result === undefined) {
        const entry = sequence.fed > 0 ? known! : await this.prefix(model, request.prefix);
        if (request.continuation.length === 0) {
          const { sampling, u } = sequence.draw;
          const draw = sampler.draw(entry.logits!, 0, sampling, u);
          const { token, kept = [] } = draw;
          sequence.append(
            sequenceToken(model, sequence, entry.logits!, 0, { token, logprob: logprobOf(draw), kept }),
          );
        }
        if (sequence.aborted) return;
        if (sequence.result === undefined)
          batch.add(sequence, entry.rows, request.prefix.length + sequence.fed);
      }
      if (sequence.result !== undefined) this.replies.sampled(id, sequence.result);
    } finally {
      this.admitting = undefined;
    }
  }

  /** Joins the search that the request asks for, or begins it. */
  private async search(model: Model, id: number, request: SampleRequest): Promise<void> {
    const { config, cache, batch, sampler, searches } = model;
    const key = TurnSearch.key(request);
    const begun = searches.get(key);
    const search = begun ?? new TurnSearch(request, config.maxPositions);
    search.add(id, request);
    if (begun) return;
    searches.set(key, search);
    const { root } = search;
    const known = cache.get(sessionKey(request.session));
    if (known !== undefined) root.reuse(known);
    this.admitting = root;
    try {
      const entry = root.fed > 0 ? known! : await this.prefix(model, request.prefix);
      if (root.aborted) return;
      batch.add(root, entry.rows, request.prefix.length + root.fed);
      if (request.continuation.length > 0) return;
      const { temperature } = request.sampling;
      search.told(root, sampler.likeliest(entry.logits!, 0, temperature, { most: search.width }));
      this.growSearches(model);
    } finally {
      this.admitting = undefined;
    }
  }

  /** Searches whose beams have been fed take a position, and those that are over are answered. */
  private growSearches({ batch, cache, searches }: Model): void {
    for (const [key, search] of searches) {
      search.grow(batch);
      if (!search.over) continue;
      searches.delete(key);
      for (const { id, result, session, cache: entry } of search.found()) {
        if (session !== null) cache.set(sessionKey(session), entry);
        this.replies.sampled(id, result);
      }
    }
  }

  private async prefix({ backend, cache }: Model, tokens: readonly number[]): Promise<CachedSequence> {
    const key = `prefix ${tokens.join(' ')}`;
    const known = cache.get(key);
    if (known !== undefined) return known;
    const entry = { ...(await backend.prefill(tokens)), prefix: tokens, tokens: [], pieces: [] };
    cache.set(key, entry);
    return entry;
  }

  /** Feeds the pieces of several tokens that are due, until every sequence is to be fed one token. */
  private async feedPieces(model: Model): Promise<void> {
    const { backend, batch, draws } = model;
    for (;;) {
      const lanes = batch
        .seats()
        .flatMap(({ block, sequences }) =>
          sequences.flatMap((sequence, slot) =>
            sequence.size > 1 ? [{ block, sequence, slot, tokens: sequence.next }] : [],
          ),
        );
      if (lanes.length === 0) return;
      const fed = lanes.slice(0, LANES);
      fed.forEach(({ sequence }, lane) => draws.ask(lane, sequence.wanted));
      const logits = await backend.feed(fed, draws);
      fed.forEach(({ block, sequence, slot, tokens }, lane) => {
        block.lengths[slot]! += tokens.length;
        tellSearch(model, sequence, logits, lane);
        const drawn = drawnAt(draws, lane);
        sequence.advance(drawn && sequenceToken(model, sequence, logits, lane, drawn));
      });
      for (const seats of batch.seats()) this.dismiss(model, seats);
      batch.settle();
    }
  }

  private async step(model: Model, seats: Seats): Promise<void> {
    const { block, sequences } = seats;
    const { draws } = block;
    for (const [slot, sequence] of sequences.entries()) {
      block.tokens[slot] = sequence.next[0]!;
      draws.ask(slot, sequence.wanted);
    }
    await model.backend.step(block);
    const logits = model.backend.logits(block);
    for (const [slot, sequence] of sequences.entries()) {
      block.lengths[slot]!++;
      tellSearch(model, sequence, logits, slot);
      const drawn = drawnAt(draws, slot);
      sequence.advance(drawn && sequenceToken(model, sequence, logits, slot, drawn));
    }
    this.dismiss(model, seats);
  }

  /** Sequences whose turn is over leave their slots, and their caches are kept. */
  private dismiss({ cache, batch }: Model, seats: Seats): void {
    const { block, sequences } = seats;
    // From the end, because the last sequence moves into a slot that is freed.
    for (let slot = block.count - 1; slot >= 0; slot--) {
      const sequence = sequences[slot]!;
      const { result, aborted } = sequence;
      if (result === undefined && !aborted) continue;
      if (!aborted && !sequence.released) {
        const { session, prefix } = sequence.request;
        cache.set(sessionKey(session), { rows: block.extract(slot), prefix, ...sequence.history });
      }
      batch.remove(seats, slot);
      if (result !== undefined && !aborted) this.replies.sampled(sequence.id, result);
    }
  }
}

const drawnAt = (draws: Draws, row: number): SequenceToken | undefined =>
  draws.wanted[row] === 1
    ? { token: draws.token[row]!, logprob: draws.logprob(row), kept: draws.keptOf(row) }
    : undefined;

/** Where a search is to take the token that follows what was fed, it is told which are likeliest. */
function tellSearch(
  { sampler, config }: Pick<Model, 'sampler' | 'config'>,
  sequence: Sequence,
  logits: Float32Array,
  row: number,
): void {
  const { search, request, isNew } = sequence;
  if (!search || !isNew) return;
  const { temperature } = request.sampling;
  const asked = { most: search.width };
  search.told(sequence, sampler.likeliest(logits, row * config.vocabSize, temperature, asked));
}

/** What was drawn from a row of logits, with what else could have been, where the request asks for that. */
function sequenceToken(
  { sampler, config }: Pick<Model, 'sampler' | 'config'>,
  { request: { alternatives, sampling } }: Sequence,
  logits: Float32Array,
  row: number,
  drawn: SequenceToken,
): SequenceToken {
  if (!alternatives) return drawn;
  const start = row * config.vocabSize;
  const { most, also = [] } = alternatives;
  const asked = { most, also: [drawn.token, ...also] };
  return { ...drawn, alternatives: sampler.likeliest(logits, start, sampling.temperature, asked) };
}

const sessionKey = (session: string) => `session ${session}`;
