import { ObjectStore } from '../store/objects/object-store.ts';
import { PolicyPool } from '../activities/rollout/policy-pool.ts';
import { createDecoder } from '../engine/decoder/decoder.ts';
import { createLearner } from '../engine/learner/process/remote-learner.ts';
import { inThisProcess } from '../environments/host/hosted-environment.ts';
import { loadEnvironments } from '../environments/families/index.ts';
import { readSettings } from '../workers/settings.ts';
import { WARM_START } from './bench-specs.ts';
import { plainRun } from './plain-run.ts';

// One plain run in a process that is as new as the workers it is compared with. It is described by the variables that
// describe a worker, says when it is ready, gets the spec, and answers with what it measured.

export type FromPlainProcess = { kind: 'ready' } | ({ kind: 'done' } & PlainMeasurement);

export interface PlainMeasurement {
  /** Wall seconds, start-up of the process not counted. */
  seconds: number;
  /** SHA-256 of the final weights. */
  weights: string;
  /** When each RL step was done, epoch milliseconds. */
  stepsDone: number[];
}

const tell = (message: FromPlainProcess): void => void process.send!(message);

async function main(): Promise<void> {
  const settings = readSettings();
  const store = await ObjectStore.connect(settings.store);
  const environments = inThisProcess((await loadEnvironments(settings.environmentModules)).values());
  const policies = new PolicyPool(store, () => createDecoder({ threads: settings.decoderThreads }));
  const learner = await createLearner();
  try {
    const asked = new Promise((resolve) => process.once('message', resolve));
    tell({ kind: 'ready' });
    const spec = await asked;
    const stepsDone: number[] = [];
    const start = performance.now();
    const result = await plainRun(spec, {
      store,
      environments,
      policies,
      learner,
      run: 'bench',
      onStep: ({ stage }) => {
        if (stage !== WARM_START) stepsDone.push(Date.now());
      },
    });
    const seconds = (performance.now() - start) / 1000;
    tell({ kind: 'done', seconds, weights: result.checkpoint.weights, stepsDone });
  } finally {
    await learner.close();
    await policies.close();
    store.close();
  }
}

process.once('disconnect', () => process.exit());
await main();
process.disconnect();
