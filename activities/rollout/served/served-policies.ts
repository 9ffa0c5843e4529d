import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { GradusError } from '../../../core/errors.ts';
import type { ModelConfig } from '../../../core/model/config.ts';
import type { CheckpointRef } from '../../../core/refs.ts';
import type { HeldModel, ServedPolicySpec } from '../../../core/schema/policy.ts';
import type { Policy } from '../../../engine/policy.ts';
import type { ObjectStore } from '../../../store/objects/object-store.ts';
import { loadModelFiles } from '../../../store/training/checkpoints.ts';
import { Speakers } from '../speakers.ts';
import type { LeaseOptions, PolicyLease, PolicyProvider } from '../policies.ts';
import { assertTokens } from './assert-sampled.ts';
import { Fleet } from './fleet.ts';
import { HandOver } from './hand-over.ts';
import type { ServedVersion } from './hand-over.ts';
import { Replica } from './replica.ts';
import { roundedVersion } from '../rounded-version.ts';
import { savedCheckpoint, stageCheckpoint } from './staging.ts';

/** Checkpoints that lie in the folder at once, of those that this process has put there and nobody samples with. */
const MOST_STAGED = 3;
/** How much of a digest names an adapter. */
const NAME_DIGITS = 24;

type Staged = Pick<ServedVersion, 'staged' | 'adapter'>;
const NOT_STAGED: Staged = { staged: null, adapter: null };

/** Policies on servers that are there already: they hold the weights, and rollout workers the tokenizer alone. */
export class ServedPolicies implements PolicyProvider {
  private readonly store: ObjectStore;
  private readonly spec: ServedPolicySpec;
  private readonly fleet: Fleet;
  private readonly speakers = new Speakers();
  private readonly staged = new Map<string, { weights: string; version: Promise<Staged> }>();
  private readonly leases = new Map<string, number>();
  private readonly waiting: (() => void)[] = [];
  /** Settles when nothing is being taken out of the folder. */
  private tidied: Promise<void> = Promise.resolve();

  /** Throws GradusError('policy', 'no-key') when the variable that shall hold the servers' key is not set. */
  constructor(store: ObjectStore, spec: ServedPolicySpec) {
    this.store = store;
    this.spec = spec;
    const replicas = spec.urls.map((url) => new Replica(spec, url, keyOf(spec)));
    this.fleet = new Fleet(replicas, new HandOver(store, spec), spec);
  }

  async lease(checkpoint: CheckpointRef, { run, signal }: LeaseOptions): Promise<PolicyLease> {
    const { weights } = checkpoint;
    await this.untilFree(weights, signal);
    this.leases.set(weights, (this.leases.get(weights) ?? 0) + 1);
    let released = false;
    const release = (): void => {
      if (released) return;
      released = true;
      this.leases.set(weights, this.leases.get(weights)! - 1);
      this.tidied = this.tidied.then(() => this.tidy());
      for (const wake of this.waiting.splice(0)) wake();
    };
    try {
      const { held } = this.spec;
      const [staged, files] = await Promise.all([
        held ? null : this.stage(checkpoint, run),
        loadModelFiles(this.store, checkpoint, { signal }),
      ]);
      const spoken = this.speakers.of(files);
      // Nothing was handed over, so nobody would notice that a server has been started again with another model.
      if (held) this.fleet.forget();
      const version: ServedVersion = { checkpoint, run, config: spoken.config, ...(staged ?? NOT_STAGED) };
      await this.fleet.open(version, signal);
      return { ...spoken, policy: this.policyOf(version, spoken.config), release };
    } catch (error) {
      release();
      throw error;
    }
  }

  /** See `Fleet.says`. */
  says(signal: AbortSignal): Promise<Omit<HeldModel, 'version'>> {
    return this.fleet.says(signal);
  }

  /** See `Fleet.assertCapable`. */
  assertCapable(scalesLogits: boolean, signal: AbortSignal): Promise<void> {
    return this.fleet.assertCapable(scalesLogits, signal);
  }

  close(): Promise<void> {
    return this.fleet.close();
  }

  private policyOf(version: ServedVersion, config: ModelConfig): Policy {
    return {
      sample: async (request, signal = new AbortController().signal) => {
        const sampled = await this.fleet.sample(version, request, signal);
        assertTokens(sampled.served?.server ?? '', sampled.tokens, config);
        return sampled;
      },
      release: () => undefined,
      close: async () => undefined,
    };
  }

  /** Servers that hold one set of weights get others when nobody samples from these; adapters are held beside each other. */
  private async untilFree(weights: string, signal: AbortSignal): Promise<void> {
    const isBusy = () => [...this.leases].some(([other, count]) => other !== weights && count > 0);
    while (!this.spec.adapters && !this.spec.held && isBusy()) {
      signal.throwIfAborted();
      await new Promise<void>((resolve) => {
        this.waiting.push(resolve);
        signal.addEventListener('abort', () => resolve(), { once: true });
      });
    }
  }

  /** Takes the oldest checkpoints out of the folder again. What cannot be deleted stays: it harms nobody. */
  private async tidy(): Promise<void> {
    const idle = [...this.staged].filter(([, { weights }]) => (this.leases.get(weights) ?? 0) === 0);
    for (const [key, { weights }] of idle.slice(0, Math.max(0, this.staged.size - MOST_STAGED))) {
      this.staged.delete(key);
      if (this.spec.server === 'tinker') continue;
      const name = roundedVersion(weights, this.spec.dtype);
      await rm(join(this.spec.folder, name), { recursive: true, force: true }).catch(() => undefined);
    }
  }

  private async stage(checkpoint: CheckpointRef, run: string): Promise<Staged> {
    const { weights } = checkpoint;
    const known = this.staged.get(`${run}/${weights}`);
    if (known) return known.version;
    const staging = this.stagedOf(checkpoint);
    this.staged.set(`${run}/${weights}`, { weights, version: staging });
    staging.catch(() => this.staged.delete(`${run}/${weights}`));
    return staging;
  }

  /** For all who lease it, whoever of them is called off. */
  private async stagedOf(checkpoint: CheckpointRef): Promise<Staged> {
    await this.tidied;
    const { folder, dtype, server } = this.spec;
    const { signal } = new AbortController();
    const staged =
      server === 'tinker'
        ? await savedCheckpoint(this.store, checkpoint, signal)
        : await stageCheckpoint(this.store, checkpoint, folder, signal, dtype);
    const adapter = staged.isAdapter ? `gradus-${checkpoint.weights.slice(0, NAME_DIGITS)}` : null;
    return { staged, adapter };
  }
}

function keyOf({ apiKeyVariable }: ServedPolicySpec): string | undefined {
  if (apiKeyVariable === undefined) return undefined;
  const key = process.env[apiKeyVariable];
  if (key && /^[\x21-\x7e]+$/.test(key)) return key;
  const what = key ? 'has a space, a line break or a letter that no header may have' : 'is not set';
  const why = `policy.apiKeyVariable names ${apiKeyVariable}, which ${what} where the rollout worker runs`;
  throw new GradusError('policy', 'no-key', `${why}: set it and start the worker again`);
}
