import type { RecordingPolicySpec, ServedPolicySpec } from '../../core/schema/policy.ts';
import type { ObjectStore } from '../../store/objects/object-store.ts';
import type { PolicyProvider } from './policies.ts';
import { RecordedPolicies } from './recorded-policies.ts';
import { ServedPolicies } from './served/served-policies.ts';

/** The policies that runs name in place of a worker's own decoders. */
export class OtherPolicies {
  private readonly store: ObjectStore;
  private readonly fleets = new Map<string, ServedPolicies>();

  constructor(store: ObjectStore) {
    this.store = store;
  }

  of(spec: RecordingPolicySpec): PolicyProvider {
    return spec.kind === 'http' ? this.served(spec) : new RecordedPolicies(this.store);
  }

  /** One for each description of servers: what they hold is known to all who ask them. */
  served(spec: ServedPolicySpec): ServedPolicies {
    const key = JSON.stringify(spec);
    const known = this.fleets.get(key);
    if (known) return known;
    const fleet = new ServedPolicies(this.store, spec);
    this.fleets.set(key, fleet);
    return fleet;
  }

  async close(): Promise<void> {
    await Promise.all([...this.fleets.values()].map((fleet) => fleet.close()));
  }
}
