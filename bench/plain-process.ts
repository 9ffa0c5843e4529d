import { loadEnvironments } from '../environments/families/index.ts';
import { inThisProcess } from '../environments/host/hosted-environment.ts';
import { readSettings } from '../workers/settings.ts';
import { serveChild } from './child.ts';
import { openEngine } from './installations.ts';
import { plainRun } from '../test/support/plain-run.ts';
import { WARM_START } from './specs.ts';

// Plain runs in a process that is as new as the workers it is compared with, and described by the same variables.

export interface PlainMeasurement {
  /** Wall seconds, start-up of the process not counted. */
  seconds: number;
  /** SHA-256 of the final weights. */
  weights: string;
  /** When each RL step was done, epoch milliseconds. */
  stepsDone: number[];
}

const settings = readSettings();
const environments = inThisProcess((await loadEnvironments(settings.environmentModules)).values());
const engine = await openEngine(settings);

await serveChild({
  async run({ spec }: { spec: unknown }): Promise<{ run: PlainMeasurement }> {
    const stepsDone: number[] = [];
    const start = performance.now();
    const onStep = ({ stage }: { stage: string }): void => {
      if (stage !== WARM_START) stepsDone.push(Date.now());
    };
    const result = await plainRun(spec, { ...engine, environments, run: 'bench', onStep });
    const seconds = (performance.now() - start) / 1000;
    return { run: { seconds, weights: result.checkpoint.weights, stepsDone } };
  },
});
await engine.close();
