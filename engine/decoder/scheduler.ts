import { GradusError, messageOf } from '../../core/errors.ts';
import type { ModelConfig } from '../model-config.ts';
import type { SampleRequest, SampleResult } from '../policy.ts';
import type { DecoderBackend } from './backend.ts';
import { Batch, type Seats } from './batch.ts';
import { kvShape } from './kv-block.ts';
import { KvCache, type CachedSequence } from './kv-cache.ts';
import { logprobOf, Sampler } from './sampler.ts';
import { Sequence } from './sequence.ts';

/** Sequences of a block: with fewer, weights are read more often; with more, nothing is gained. */
const SLOTS = 64;

/** How the scheduler answers; each id is answered once, unless it was aborted. */
export interface Replies {
  loaded(id: number): void;
  sampled(id: number, result: SampleResult): void;
  failed(id: number, error: GradusError): void;
}

export interface SchedulerSettings {
  cacheBytes: number;
  maxBatch: number;
}

type LoadBackend = (config: ModelConfig, weights: Float32Array) => Promise<DecoderBackend>;

/** Everything that belongs to one set of weights, and goes with it. */
interface Model {
  config: ModelConfig;
  backend: DecoderBackend;
  sampler: Sampler;
  cache: KvCache;
  batch: Batch;
}

type Order =
  | { type: 'load'; id: number; config: ModelConfig; weights: Float32Array }
  | { type: 'sample'; id: number; request: SampleRequest };

/**
 * Continuous batching: every request joins the batch as soon as there is room and leaves it when its turn ends.
 *
 * What a request samples does not depend on that, because its tokens are always fed in the same pieces: the prefix
 * as one piece in a batch of its own, then every further token, sampled or observed, as a piece of one. Whatever is
 * missing from the cache is fed again in these pieces, so a lost cache shows nowhere but in time.
 *
 * Orders are taken in turn: a load waits until the requests before it are done, the requests after it wait for it.
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
    for (const sequence of this.inFlight()) if (sequence.id === id) sequence.aborted = true;
  }

  release(session: string): void {
    this.model?.cache.delete(sessionKey(session));
    for (const sequence of this.inFlight())
      if (sequence.request.session === session) sequence.released = true;
  }

  /** Drops all work and frees the model. */
  async dispose(): Promise<void> {
    this.queue.length = 0;
    for (const sequence of this.inFlight()) sequence.aborted = true;
    await this.running;
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
        for (const seats of model.batch.seats()) await this.step(model, seats);
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
      if (active > 0 && (order.type === 'load' || active >= this.settings.maxBatch)) return;
      this.queue.shift();
      if (order.type === 'load') await this.load(order.id, order.config, order.weights);
      else await this.start(order.id, order.request);
    }
  }

  private async load(id: number, config: ModelConfig, weights: Float32Array): Promise<void> {
    // The old model goes first, so that a load that fails cannot be mistaken for one that went well.
    await this.model?.backend.dispose();
    this.model = undefined;
    try {
      this.model = {
        config,
        backend: await this.loadBackend(config, weights),
        sampler: new Sampler(config.vocabSize),
        cache: new KvCache(this.settings.cacheBytes),
        batch: new Batch(kvShape(config), SLOTS),
      };
      this.replies.loaded(id);
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
    const problem = invalid(request, model.config);
    if (problem !== undefined) {
      this.replies.failed(id, new GradusError('policy', 'bad-request', problem));
      return;
    }
    const { config, cache, batch, sampler } = model;
    const known = cache.get(sessionKey(request.session));
    const fed = known === undefined ? 0 : reusable(known, request);
    const sequence = new Sequence(id, request, fed, config.maxPositions);
    this.admitting = sequence;
    try {
      if (sequence.result === undefined) {
        const entry = fed > 0 ? known! : await this.prefix(model, request.prefix);
        if (request.continuation.length === 0) {
          const { sampling, u } = sequence.draw;
          const draw = sampler.draw(entry.logits!, 0, sampling, u);
          sequence.append({ token: draw.token, logprob: logprobOf(draw) });
        }
        if (sequence.aborted) return;
        if (sequence.result === undefined) batch.add(sequence, entry.rows, request.prefix.length + fed);
      }
      if (sequence.result !== undefined) this.replies.sampled(id, sequence.result);
    } finally {
      this.admitting = undefined;
    }
  }

  private async prefix({ backend, cache }: Model, tokens: readonly number[]): Promise<CachedSequence> {
    const key = `prefix ${tokens.join(' ')}`;
    const known = cache.get(key);
    if (known !== undefined) return known;
    const entry = { ...(await backend.prefill(tokens)), prefix: tokens, tokens: [] };
    cache.set(key, entry);
    return entry;
  }

  private async step(model: Model, seats: Seats): Promise<void> {
    const { backend, cache, batch } = model;
    const { block, sequences } = seats;
    const { draws } = block;
    for (let slot = 0; slot < block.count; slot++) draws.ask(slot, sequences[slot]!.wanted);
    await backend.step(block);
    // From the end, because the last sequence moves into a slot that is freed.
    for (let slot = block.count - 1; slot >= 0; slot--) {
      block.lengths[slot]!++;
      const sequence = sequences[slot]!;
      const drawn = draws.wanted[slot] === 1;
      sequence.advance(drawn ? { token: draws.token[slot]!, logprob: draws.logprob(slot) } : undefined);
      const { result } = sequence;
      if (result === undefined && !sequence.aborted) {
        block.tokens[slot] = sequence.next;
        continue;
      }
      if (!sequence.aborted && !sequence.released) {
        const { session, prefix } = sequence.request;
        cache.set(sessionKey(session), { rows: block.extract(slot), prefix, tokens: sequence.history });
      }
      batch.remove(seats, slot);
      if (result !== undefined && !sequence.aborted) this.replies.sampled(sequence.id, result);
    }
  }
}

const sessionKey = (session: string) => `session ${session}`;

/**
 * How many tokens after the prefix can be taken from a cache. The last one of the continuation is always fed again,
 * for its logits; a cache that shares only a beginning with the request is used up to where they part.
 */
function reusable(known: CachedSequence, { prefix, continuation }: SampleRequest): number {
  // The same tokens in other pieces are other bits: the prefix has to be the same prefix.
  if (known.prefix.length !== prefix.length || prefix.some((token, i) => known.prefix[i] !== token)) return 0;
  const most = Math.min(known.tokens.length, continuation.length - 1);
  let fed = 0;
  while (fed < most && known.tokens[fed] === continuation[fed]) fed++;
  return fed;
}

function invalid({ prefix, continuation, sampling }: SampleRequest, config: ModelConfig): string | undefined {
  if (prefix.length === 0) return 'The prefix is empty. Give at least one prompt token.';
  const known = (token: number) => Number.isInteger(token) && token >= 0 && token < config.vocabSize;
  const stranger = prefix.find((token) => !known(token)) ?? continuation.find((token) => !known(token));
  if (stranger !== undefined) {
    return `Token ${stranger} is not in the vocabulary of ${config.vocabSize}. Tokenize with this model's tokenizer.`;
  }
  const { temperature, topK, topP } = sampling;
  if (!(temperature >= 0) || !(topK >= 0) || !(topP >= 0 && topP <= 1)) {
    return `Temperature ${temperature}, top-k ${topK} or top-p ${topP} is out of range. Use ≥ 0, ≥ 0 and 0 to 1.`;
  }
  return undefined;
}
