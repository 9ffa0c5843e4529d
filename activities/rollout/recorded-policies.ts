import { GradusError } from '../../core/errors.ts';
import type { CheckpointRef } from '../../core/refs.ts';
import type { ObjectStore } from '../../store/objects/object-store.ts';
import { loadModelFiles } from '../../store/training/checkpoints.ts';
import type { LeaseOptions, PolicyLease, PolicyProvider } from './policies.ts';
import { Speakers } from './speakers.ts';

/** Policies that sample nothing: every turn is one that servers sampled for an earlier run. */
export class RecordedPolicies implements PolicyProvider {
  private readonly store: ObjectStore;
  private readonly speakers = new Speakers();

  constructor(store: ObjectStore) {
    this.store = store;
  }

  async lease(checkpoint: CheckpointRef, { signal }: LeaseOptions): Promise<PolicyLease> {
    const files = await loadModelFiles(this.store, checkpoint, { signal });
    return {
      ...this.speakers.of(files),
      policy: {
        sample: async ({ session }) => {
          const why = `the recorded run has no turn for the episode ${session} here`;
          const what = 'Give policy.run the name of a run with the same spec, whose policy was served';
          throw new GradusError('policy', 'not-recorded', `${why}. ${what}`);
        },
        release: () => undefined,
        close: async () => undefined,
      },
      release: () => undefined,
    };
  }

  async close(): Promise<void> {}
}
