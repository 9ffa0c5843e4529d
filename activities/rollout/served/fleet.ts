import { createHash } from 'node:crypto';
import { GradusError } from '../../../core/errors.ts';
import { uniform } from '../../../core/random.ts';
import type { HeldModel, ServedPolicySpec } from '../../../core/schema/policy.ts';
import type { SampleRequest, SampleResult } from '../../../engine/policy.ts';
import { assertCapable } from './capabilities.ts';
import { assertSampled } from './assert-sampled.ts';
import type { HandOver, ServedVersion } from './hand-over.ts';
import type { Replica } from './replica.ts';
import type { ServerSample } from './server-api.ts';

/** How much more than its share a replica may have before the next one in the order gets a request. */
const OVER_SHARE = 1.25;
/** A piece that takes so many times as long as the others need for as many tokens is taken elsewhere. */
const TOO_SLOW = 8;
/** Not before this many seconds. */
const SLOW_FROM = 10;
/** A request that no replica has answered for so long fails, and Temporal says so and tries again, milliseconds. */
const PATIENCE = 120_000;

/**
 * Replicas of one policy. Samples of one task go to one replica, whose cache has their prefix, as long as that has not much
 * more to do than others (consistent hashing with bounded loads, Mirrokni et al. 2018); what fails at one is asked of
 * another.
 */
export class Fleet {
  private readonly replicas: readonly Replica[];
  private readonly handOver: HandOver;
  private readonly spec: ServedPolicySpec;
  private readonly waiting: (() => void)[] = [];

  constructor(replicas: readonly Replica[], handOver: HandOver, spec: ServedPolicySpec) {
    this.replicas = replicas;
    this.handOver = handOver;
    this.spec = spec;
  }

  /** Until one replica has shown that it holds these weights. Throws what the last one said where none does. */
  async open(version: ServedVersion, signal: AbortSignal): Promise<void> {
    const opened = this.replicas.map((replica) =>
      replica
        .use(signal, (shared) => this.handOver.ensure(replica, version, shared))
        .finally(() => this.wake()),
    );
    try {
      await Promise.any(opened);
    } catch (error) {
      signal.throwIfAborted();
      const failures = (error as AggregateError).errors as unknown[];
      throw failures.find((one) => one instanceof GradusError && one.type !== 'server-away') ?? failures[0];
    }
  }

  /** What the first of them is asked for, and what it says of it. Throws GradusError('policy', 'server-cannot'). */
  async says(signal: AbortSignal): Promise<Omit<HeldModel, 'version'>> {
    const [first] = this.replicas;
    return first!.use(signal, async (shared) => {
      const models = await first!.api.models(shared);
      const model = this.spec.model ?? models[0]!;
      if (models.includes(model)) return { model, says: await first!.api.says(model, shared) };
      const why = `${first!.url} has no model ${model}, only ${models.join(', ')}: give one of these names`;
      throw new GradusError('policy', 'server-cannot', why);
    });
  }

  /** The servers show again what they hold, before the next request. */
  forget(): void {
    for (const replica of this.replicas) replica.weights = null;
  }

  /**
   * Whether the servers that answer can do what a run asks. Throws GradusError('policy', 'server-cannot') by the first that
   * cannot, and what the first one said where none answers.
   */
  async assertCapable(scalesLogits: boolean, signal: AbortSignal): Promise<void> {
    const looked = await Promise.allSettled(
      this.replicas.map((replica) =>
        replica.use(signal, (shared) => assertCapable(replica, this.spec, scalesLogits, shared)),
      ),
    );
    const failures = looked.flatMap((one) => (one.status === 'rejected' ? [one.reason as unknown] : []));
    const final = failures.find((one) => !(one instanceof GradusError) || !one.retryable);
    if (final !== undefined) throw final;
    if (failures.length === this.replicas.length) throw failures[0];
  }

  /** One piece of a turn. Throws GradusError('policy', …) where no replica could be brought to sample it. */
  async sample(version: ServedVersion, request: SampleRequest, signal: AbortSignal): Promise<SampleResult> {
    const deadline = performance.now() + PATIENCE;
    for (;;) {
      const replica = await this.next(request.prefix, signal, deadline);
      try {
        return await replica.use(signal, (shared) => this.sampleAt(replica, version, request, shared));
      } catch (error) {
        signal.throwIfAborted();
        if (!(error instanceof GradusError) || !error.retryable) throw error;
        // It does not hold them, or nobody knows what it holds.
        // One that was restarted may have begun with another model of the same name.
        if (error.type !== 'server-away' || this.spec.held) replica.weights = null;
        if (error.type !== 'unknown-model' && replica.restsFor() === 0) replica.rest();
        if (performance.now() > deadline) throw error;
      } finally {
        this.wake();
      }
    }
  }

  async close(): Promise<void> {
    await Promise.all(this.replicas.map((replica) => replica.close()));
  }

  private async sampleAt(
    replica: Replica,
    version: ServedVersion,
    request: SampleRequest,
    signal: AbortSignal,
  ): Promise<SampleResult> {
    await this.handOver.ensure(replica, version, signal);
    const { weights } = version.checkpoint;
    const { prefix, continuation, maxNewTokens, stopTokens, sampling, key } = request;
    const model = await this.handOver.modelOf(replica, version, signal);
    // This function holds it, because it asks it below.
    const limit = AbortSignal.timeout(Math.ceil(1000 * this.secondsFor(replica, maxNewTokens)));
    const start = performance.now();
    let sampled: ServerSample;
    try {
      sampled = await replica.api.sample(
        {
          model,
          tokens: [...prefix, ...continuation],
          maxNewTokens,
          stopTokens,
          temperature: sampling.topK === 1 ? 0 : sampling.temperature,
          // Of 31 bits: both servers take as many.
          seed: Math.floor(uniform(key, continuation.length) * 2 ** 31),
          salt: weights,
        },
        AbortSignal.any([signal, limit]),
      );
    } catch (error) {
      if (!limit.aborted || signal.aborted) throw error;
      const why = `${replica.url} is much slower than the others`;
      throw new GradusError('policy', 'server-away', why, { retryable: true, cause: error });
    }
    replica.timed((performance.now() - start) / 1000, sampled.tokens.length);
    // An adapter is asked for by a name that only its weights have.
    const asked = version.adapter !== null || this.spec.adapters || this.spec.held ? null : weights;
    assertSampled(replica.url, request, sampled, asked);
    const { versions } = sampled;
    return {
      tokens: sampled.tokens,
      samplerLogprobs: sampled.logprobs,
      finish: sampled.finish,
      served: { server: replica.url, weights, ...(versions && { versions }) },
    };
  }

  /** How long a piece may take here, seconds. By tokens that are asked for, so that a long answer is not the slow one. */
  private secondsFor(replica: Replica, tokens: number): number {
    const others = this.replicas.filter((one) => one !== replica && one.restsFor() === 0);
    const fastest = Math.min(
      ...others.map(({ secondsPerToken }) => secondsPerToken ?? Number.POSITIVE_INFINITY),
    );
    return Math.min(this.spec.requestSeconds, Math.max(SLOW_FROM, TOO_SLOW * fastest * tokens));
  }

  /** The replica that gets the next request; waits while all rest or are busy. */
  private async next(prefix: readonly number[], signal: AbortSignal, deadline: number): Promise<Replica> {
    const order = this.replicas.toSorted((a, b) => (placeOf(a, prefix) < placeOf(b, prefix) ? -1 : 1));
    for (;;) {
      signal.throwIfAborted();
      const there = order.filter((replica) => replica.restsFor() === 0);
      const all = there.reduce((sum, { inFlight }) => sum + inFlight, 0);
      const share = Math.ceil((OVER_SHARE * (all + 1)) / Math.max(1, there.length));
      const most = Math.min(this.spec.concurrency, share);
      const free = there.find(({ inFlight }) => inFlight < most);
      if (free) return free;
      if (there.length === 0 && performance.now() > deadline) {
        const why = `none of ${this.replicas.map(({ url }) => url).join(', ')} answers`;
        throw new GradusError('policy', 'server-away', `${why}: start them, or look at what they log`, {
          retryable: true,
        });
      }
      const pause = there.length > 0 ? null : Math.min(...order.map((replica) => replica.restsFor()));
      await this.woken(pause, signal);
    }
  }

  /** A server has room, or is gone. */
  private wake(): void {
    for (const wake of this.waiting.splice(0)) wake();
  }

  /** Until a request has ended, or `pause` milliseconds have passed. */
  private woken(pause: number | null, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const timer = pause === null ? undefined : setTimeout(done, pause + 1);
      const { waiting } = this;
      function done(): void {
        clearTimeout(timer);
        signal.removeEventListener('abort', done);
        const at = waiting.indexOf(done);
        if (at >= 0) waiting.splice(at, 1);
        resolve();
      }
      waiting.push(done);
      signal.addEventListener('abort', done, { once: true });
    });
  }
}

/** Rendezvous hashing: the order of replicas for a prefix. */
const placeOf = ({ url }: Replica, prefix: readonly number[]): string =>
  createHash('sha256').update(`${url}\0${prefix.join()}`).digest('hex');
