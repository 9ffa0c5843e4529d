import type { CheckpointRef } from '../../core/refs.ts';
import type { RolloutDtype } from '../../core/schema/policy.ts';
import type { LocalPolicy } from '../../engine/policy.ts';
import { loadPolicy, loadUnmerged } from '../../store/training/checkpoints.ts';
import type { PolicyContent } from '../../store/training/checkpoints.ts';
import type { ObjectStore } from '../../store/objects/object-store.ts';
import type { LeaseOptions, PolicyLease, PolicyProvider } from './policies.ts';
import { roundedVersion } from './rounded-version.ts';
import { Speakers } from './speakers.ts';

/** A decoder of this process. */
interface LocalLease extends PolicyLease {
  policy: LocalPolicy;
}

type Loaded = Pick<PolicyLease, 'tokenizer' | 'config' | 'dialectFor'>;

interface Slot {
  policy: LocalPolicy;
  version: string | null;
  ready: Promise<Loaded>;
  loading: boolean;
  leases: number;
  usedAt: number;
}

/**
 * Decoders by checkpoint and dtype: all who ask for the same weights share one, and a decoder gets new weights only when nobody
 * uses the old ones, so that two runs on one worker do not sample from each other's policy.
 */
export class PolicyPool implements PolicyProvider {
  private readonly slots: Slot[] = [];
  private readonly waiting: (() => void)[] = [];
  private clock = 0;
  private base: { manifest: string; policy: Promise<PolicyContent> } | undefined;
  /** The last checkpoint that was loaded whole, for as long as memory is not wanted: the next may be an adapter of it. */
  private whole: { manifest: string; policy: WeakRef<PolicyContent> } | undefined;
  private readonly speakers = new Speakers();
  private readonly store: ObjectStore;
  private readonly create: () => LocalPolicy;
  private readonly size: number;

  constructor(store: ObjectStore, create: () => LocalPolicy, size = 2) {
    this.store = store;
    this.create = create;
    this.size = size;
  }

  /** Waits while all decoders are busy with other weights. */
  async lease(
    checkpoint: CheckpointRef,
    { dtype = 'float32' }: Pick<LeaseOptions, 'dtype'> = {},
  ): Promise<LocalLease> {
    for (;;) {
      const slot = this.slotFor(checkpoint, dtype);
      if (slot === undefined) {
        await new Promise<void>((resolve) => this.waiting.push(resolve));
        continue;
      }
      slot.leases++;
      slot.usedAt = ++this.clock;
      try {
        const loaded = await slot.ready;
        return { ...loaded, policy: slot.policy, release: () => this.release(slot) };
      } catch (error) {
        slot.version = null;
        this.release(slot);
        throw error;
      }
    }
  }

  async close(): Promise<void> {
    await Promise.all(this.slots.map((slot) => slot.policy.close()));
  }

  private slotFor(checkpoint: CheckpointRef, dtype: RolloutDtype): Slot | undefined {
    // The manifest, not the weights, tells checkpoints apart: the tokenizer belongs to it.
    const version = roundedVersion(checkpoint.manifest.sha256, dtype);
    const loaded = this.slots.find((slot) => slot.version === version);
    if (loaded) {
      // A decoder that crashed has forgotten its weights; those who lease it have been told, and come again.
      if (!loaded.loading && loaded.policy.version === undefined) this.load(loaded, checkpoint, dtype);
      return loaded;
    }
    const idle = this.slots.filter((slot) => slot.leases === 0).toSorted((a, b) => a.usedAt - b.usedAt)[0];
    if (this.slots.length < this.size && idle === undefined) {
      const slot: Slot = {
        policy: this.create(),
        version,
        ready: Promise.reject(new Error('not loaded')),
        loading: false,
        leases: 0,
        usedAt: 0,
      };
      slot.ready.catch(() => undefined);
      this.slots.push(slot);
      this.load(slot, checkpoint, dtype);
      return slot;
    }
    if (idle) {
      idle.version = version;
      this.load(idle, checkpoint, dtype);
    }
    return idle;
  }

  /** Every checkpoint of a LoRA run has the same base: the last one is held. */
  private baseOf(ref: CheckpointRef): Promise<PolicyContent> {
    if (this.base?.manifest !== ref.manifest.sha256) {
      const whole = this.whole?.manifest === ref.manifest.sha256 ? this.whole.policy.deref() : undefined;
      const policy = whole ? Promise.resolve(whole) : loadPolicy(this.store, ref);
      const base = { manifest: ref.manifest.sha256, policy };
      this.base = base;
      base.policy.catch(() => {
        if (this.base === base) this.base = undefined;
      });
    }
    return this.base.policy;
  }

  private load(slot: Slot, checkpoint: CheckpointRef, dtype: RolloutDtype): void {
    const read = loadUnmerged(this.store, checkpoint, {}, (base) => this.baseOf(base));
    slot.ready = read.then(async (policy) => {
      const { config, weights, adapter, files } = policy;
      if (!adapter) this.whole = { manifest: checkpoint.manifest.sha256, policy: new WeakRef(policy) };
      const version = roundedVersion(checkpoint.weights, dtype);
      await slot.policy.load(version, config, weights, adapter, dtype);
      return this.speakers.of(files);
    });
    slot.loading = true;
    // Whoever leases sees the failure; a load that nobody waits for any more must not end the process.
    void slot.ready.catch(() => undefined).finally(() => (slot.loading = false));
  }

  private release(slot: Slot): void {
    slot.leases--;
    for (const resolve of this.waiting.splice(0)) resolve();
  }
}
