import { PolicyPool } from '../../../activities/rollout/policy-pool.ts';
import type { RolloutGroup } from '../../../core/episode/episode.ts';
import type { GroupResult } from '../../../core/requests.ts';
import { rate } from '../../../core/statistics/intervals.ts';
import { evaluate } from '../../../core/training/evaluation.ts';
import { total } from '../../../core/training/stage-policy.ts';
import { createDecoder } from '../../../engine/decoder/decoder.ts';
import type { Environment } from '../../../environments/contract/environment.ts';
import { inThisProcess } from '../../../environments/host/hosted-environment.ts';
import type { ParsedSpec } from '../../../spec/parse-spec.ts';
import { ObjectStore } from '../../../store/objects/object-store.ts';
import { loadTrajectories } from '../../../store/rollout/trajectories.ts';
import { importModel } from '../../../store/training/import-model.ts';
import type { BenchOptions } from '../../bench.ts';
import { withStore } from '../../installations.ts';
import { plainRollout } from '../../../test/support/plain-run.ts';
import { THREADS } from '../engines.ts';

/** What models are measured by: the first stage's levels, and the spec's seed, sampling and reward. */
export interface HeldOutOptions {
  spec: ParsedSpec;
  environments: ReadonlyMap<string, Environment>;
  tasks: number;
}

/** Success in [0, 1] of the model in a Hugging Face folder, and the episodes that it is of. */
export type Measure = (folder: string) => Promise<{ success: number; groups: RolloutGroup[] }>;

/**
 * Measures models, whoever trained them, on the same held-out tasks, with the same draws. What it takes while nobody asks
 * is an idle object store.
 */
export const withHeldOut = <T>(
  { spec, environments, tasks }: HeldOutOptions,
  options: BenchOptions,
  use: (measure: Measure) => Promise<T>,
): Promise<T> =>
  withStore(options, async (settings) => {
    const store = await ObjectStore.connect(settings.store);
    let measured = 0;
    const measure: Measure = async (folder) => {
      const run = `measured-${++measured}`;
      const { ref: checkpoint } = await importModel(store, folder, run);
      // A pool of its own: its threads are gone before anybody is timed.
      const policies = new PolicyPool(store, () => createDecoder({ threads: THREADS }), 1);
      try {
        const plain = { store, environments: inThisProcess(environments.values()), policies };
        const rollout = plainRollout(plain, new AbortController().signal);
        const { seed, sampling, reward, stages } = spec;
        const place = { run, seed, name: 'held-out', step: 0, split: 'heldout' } as const;
        let results: GroupResult[] = [];
        const { arms } = await evaluate(
          { rollout: async (requests) => (results = await rollout(requests)) },
          { ...place, checkpoint, arms: stages[0]!.arms, tasks, sampling, reward },
        );
        const groups = await Promise.all(results.map((one) => loadTrajectories(store, one.trajectories!)));
        return { success: rate(total(arms)), groups };
      } finally {
        await policies.close();
      }
    };
    return use(measure).finally(() => store.close());
  });
