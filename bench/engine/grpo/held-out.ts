import path from 'node:path';
import { importModel } from '../../../store/training/import-model.ts';
import { ObjectStore } from '../../../store/objects/object-store.ts';
import { loadTrajectories } from '../../../store/rollout/trajectories.ts';
import { PolicyPool } from '../../../activities/rollout/policy-pool.ts';
import type { ParsedSpec } from '../../../spec/parse-spec.ts';
import type { RolloutGroup } from '../../../core/episode/episode.ts';
import { evaluate } from '../../../core/training/evaluation.ts';
import { rate } from '../../../core/statistics/intervals.ts';
import type { GroupResult } from '../../../core/requests.ts';
import { total } from '../../../core/training/stage-policy.ts';
import { createDecoder } from '../../../engine/decoder/decoder.ts';
import type { Environment } from '../../../environments/contract/environment.ts';
import { inThisProcess } from '../../../environments/host/hosted-environment.ts';
import { startObjectStore } from '../../../infra/dev/object-store.ts';
import { plainRollout } from '../../plain-run.ts';
import { withTemporaryFolder } from '../../durable-run.ts';
import { THREADS } from '../engines.ts';

/** What models are measured by: the first stage's levels, and the spec's seed, sampling and reward. */
export interface HeldOutOptions {
  spec: ParsedSpec;
  environments: ReadonlyMap<string, Environment>;
  tasks: number;
}

/** Success in [0, 1], and the episodes that it is of. */
export interface Measured {
  success: number;
  groups: RolloutGroup[];
}

/** Measures the model in a Hugging Face folder. */
export type Measure = (folder: string) => Promise<Measured>;

/**
 * Measures models, whoever trained them, on the same held-out tasks, with the same draws. What it takes while nobody asks
 * is an idle object store.
 */
export function withHeldOut<T>(
  options: HeldOutOptions,
  onEvent: (text: string) => void,
  use: (measure: Measure) => Promise<T>,
): Promise<T> {
  return withTemporaryFolder(async (folder) => {
    const server = await startObjectStore({
      dataDir: path.join(folder, 'object-store'),
      logFile: path.join(folder, 'object-store.log'),
      supervise: true,
      onEvent,
    });
    const { endPoint, port, useSSL, accessKey, secretKey } = server;
    try {
      const store = await ObjectStore.connect({
        endPoint,
        port,
        useSSL,
        accessKey,
        secretKey,
        bucket: 'gradus',
        cacheDir: path.join(folder, 'blob-cache'),
      });
      let measured = 0;
      try {
        return await use((model) => measure(store, options, model, `measured-${++measured}`));
      } finally {
        store.close();
      }
    } finally {
      await server.stop();
    }
  });
}

async function measure(
  store: ObjectStore,
  { spec, environments, tasks }: HeldOutOptions,
  folder: string,
  name: string,
): Promise<Measured> {
  const { ref } = await importModel(store, folder, name);
  // A pool of its own: its threads are gone before anybody is timed.
  const policies = new PolicyPool(store, () => createDecoder({ threads: THREADS }), 1);
  try {
    const rollout = plainRollout(
      { store, environments: inThisProcess(environments.values()), policies },
      new AbortController().signal,
    );
    let results: GroupResult[] = [];
    const { arms } = await evaluate(
      { rollout: async (requests) => (results = await rollout(requests)) },
      {
        run: name,
        seed: spec.seed,
        name: 'held-out',
        step: 0,
        checkpoint: ref,
        arms: spec.stages[0]!.arms,
        tasks,
        split: 'heldout',
        sampling: spec.sampling,
        reward: spec.reward,
      },
    );
    const groups = await Promise.all(results.map((result) => loadTrajectories(store, result.trajectories!)));
    return { success: rate(total(arms)), groups };
  } finally {
    await policies.close();
  }
}
