import { join } from 'node:path';
import { GradusError } from '../../../core/errors.ts';
import type { ModelConfig } from '../../../core/model/config.ts';
import { untilAborted } from '../../../core/until-aborted.ts';
import type { CheckpointRef } from '../../../core/refs.ts';
import type { ServedPolicySpec } from '../../../core/schema/policy.ts';
import { probeKey } from '../../../store/keys.ts';
import type { ObjectStore } from '../../../store/objects/object-store.ts';
import { probes } from '../../../store/training/probes.ts';
import type { PolicyProbe } from '../../../store/training/probes.ts';
import { probeTokens } from '../../training/probe.ts';
import { badAnswer } from './connection.ts';
import { compareProbe, whyNotNew } from './proof.ts';
import type { Replica } from './replica.ts';
import type { ServerRequest } from './server-api.ts';
import type { StagedCheckpoint } from './staging.ts';

/** A checkpoint as servers are asked for it. */
export interface ServedVersion {
  checkpoint: CheckpointRef;
  /** null of a model that servers hold: nothing is handed over. */
  staged: StagedCheckpoint | null;
  /** Of the sequence by which a model that servers hold is known again. */
  config: ModelConfig;
  /** The run that samples: its learner has said what the fixed sequence is worth. */
  run: string;
  /** The name under which servers have it; null: that of the base model, which is replaced or is it. */
  adapter: string | null;
}

/** Adapters of this many versions stay loaded: those in use, and the one that is coming. */
const MOST_ADAPTERS = 2;

/** Gives servers the weights of a checkpoint, and has each show that it computes with them, or with the model that it held. */
export class HandOver {
  private readonly store: ObjectStore;
  private readonly spec: ServedPolicySpec;
  private readonly adapters = new Map<Replica, string[]>();
  private readonly bases = new Map<Replica, string>();

  constructor(store: ObjectStore, spec: ServedPolicySpec) {
    this.store = store;
    this.spec = spec;
  }

  /** One at a time at each replica; nothing where it has shown that it holds them. An aborted signal ends the waiting, too. */
  async ensure(replica: Replica, version: ServedVersion, signal: AbortSignal): Promise<void> {
    const handedOver = replica.handedOver.then(() => this.give(replica, version, signal));
    // Who comes next begins when this one is over, however it ends.
    replica.handedOver = handedOver.catch(() => undefined);
    await untilAborted(handedOver, signal);
  }

  private async give(replica: Replica, version: ServedVersion, signal: AbortSignal): Promise<void> {
    if (replica.weights === version.checkpoint.weights) return;
    signal.throwIfAborted();
    replica.weights = null;
    await this.load(replica, version, signal);
    await this.prove(replica, version, signal);
    replica.weights = version.checkpoint.weights;
  }

  /** The name by which this replica is asked for a version. */
  async modelOf(replica: Replica, { adapter }: ServedVersion, signal: AbortSignal): Promise<string> {
    if (adapter !== null) return adapter;
    const known = this.spec.model ?? this.bases.get(replica);
    if (known !== undefined) return known;
    const [base] = await replica.api.models(signal);
    this.bases.set(replica, base!);
    return base!;
  }

  private async load(replica: Replica, version: ServedVersion, signal: AbortSignal): Promise<void> {
    const { adapter, staged } = version;
    if (staged === null) return;
    const path = staged.saved ?? join(this.spec.serverFolder ?? this.spec.folder, staged.name);
    if (adapter !== null) {
      const loaded = this.adapters.get(replica) ?? [];
      this.adapters.set(replica, [...loaded.filter((name) => name !== adapter), adapter]);
      await replica.api.loadAdapter(adapter, path, signal);
      await this.unloadOld(replica, signal);
    } else if (!this.spec.adapters) {
      await replica.api.reload(path, version.checkpoint.weights, signal);
    }
  }

  private async unloadOld(replica: Replica, signal: AbortSignal): Promise<void> {
    const loaded = this.adapters.get(replica)!;
    for (const old of loaded.splice(0, Math.max(0, loaded.length - MOST_ADAPTERS))) {
      await replica.api.unloadAdapter(old, signal).catch((error: unknown) => {
        // A server that was restarted has none of them.
        if (!(error instanceof GradusError) || error.type === 'server-away') throw error;
      });
    }
  }

  /**
   * Throws GradusError('policy', 'hand-over'), retryable, where the server computes with other weights than these: log-probs
   * of a fixed sequence must be the learner's, and not those of the weights before. A token that is sampled behind a
   * part of it must have the log-prob that the whole gives it: what caches hold is of the same weights.
   */
  private async prove(replica: Replica, version: ServedVersion, signal: AbortSignal): Promise<void> {
    const { checkpoint, staged, run } = version;
    const model = await this.modelOf(replica, version, signal);
    const probe =
      staged === null
        ? await this.firstSaid(replica, model, version, signal)
        : await this.probeOf(run, checkpoint, signal);
    if (probe === null) {
      const why = `the learner has not said what ${checkpoint.manifest.key} makes of the fixed sequence`;
      throw new GradusError(
        'policy',
        'no-probe',
        `${why}: its worker is older than this one. Start it again`,
      );
    }
    const before = staged?.parent ? await this.probeOf(run, staged.parent, signal) : null;
    const asked = { model, tokens: probe.tokens, salt: checkpoint.weights };
    const served = await replica.api.score(asked, signal);
    if (served.length !== probe.logprobs.length)
      throw badAnswer(`${replica.url}: ${served.length} log-probs of ${probe.logprobs.length} tokens`);
    const refuse = (why: string): never => {
      const what =
        staged === null
          ? `${replica.url} does not compute with the model that this began with: start it with that again, or begin anew under another name`
          : `${replica.url} was given the weights ${checkpoint.weights.slice(0, 12)} and does not compute with them`;
      throw new GradusError('policy', 'hand-over', `${what}: ${why}`, { retryable: true });
    };
    const why = whyNotNew(
      compareProbe(served, probe.logprobs, before?.logprobs ?? null),
      this.spec.tolerance,
    );
    if (why !== null) refuse(why);
    const gap = await this.cachedGap(replica, asked, signal);
    if (!(gap <= this.spec.tolerance))
      refuse(
        `behind a prefix that it has cached, a token is ${gap.toPrecision(3)} nats from what it is without`,
      );
  }

  private async cachedGap(
    { api, url }: Replica,
    asked: Pick<ServerRequest, 'model' | 'tokens' | 'salt'>,
    signal: AbortSignal,
  ): Promise<number> {
    const next = await api.sample(
      { ...asked, maxNewTokens: 1, stopTokens: [], temperature: 1, seed: 1 },
      signal,
    );
    if (next.tokens.length !== 1 || next.logprobs.length !== 1)
      throw badAnswer(`${url}: ${next.tokens.length} tokens where one was asked for`);
    const whole = await api.score({ ...asked, tokens: [...asked.tokens, ...next.tokens] }, signal);
    return Math.abs(whole.at(-1)! - next.logprobs[0]!);
  }

  /** What the first server made of the fixed sequence: all others, and each after a restart, must make the same of it. */
  private async firstSaid(
    replica: Replica,
    model: string,
    { run, checkpoint, config }: ServedVersion,
    signal: AbortSignal,
  ): Promise<PolicyProbe> {
    const known = await this.probeOf(run, checkpoint, signal);
    if (known !== null) return known;
    const tokens = probeTokens(config);
    const logprobs = await replica.api.score({ model, tokens, salt: checkpoint.weights }, signal);
    const key = probeKey(run, checkpoint.weights);
    return (await this.store.putIfAbsent(key, probes, { tokens, logprobs }, { signal })).value;
  }

  private probeOf(run: string, { weights }: CheckpointRef, signal: AbortSignal): Promise<PolicyProbe | null> {
    return this.store.find(probeKey(run, weights), probes, { signal });
  }
}
