import path from 'node:path';
import { PolicyPool } from '../../../activities/rollout/policy-pool.ts';
import { exportModel } from '../../../cli/export-model.ts';
import type { RolloutGroup } from '../../../core/episode/episode.ts';
import type { StepReport } from '../../../core/ports.ts';
import type { GroupResult } from '../../../core/requests/verification.ts';
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
import { signalsOf } from '../../../test/support/histories.ts';
import { plainRollout } from '../../../test/support/plain-run.ts';
import type { BenchOptions } from '../../bench.ts';
import { durableRun, withInstallation, withEmptyStore } from '../../installations.ts';
import { peakBytesOfDescendants } from '../../processes.ts';
import { THREADS } from '../engines.ts';
import { rlSpec, warmStartSpec } from './specs.ts';

// Models as Hugging Face folders: the warm start that both sides begin with, what a durable run makes of it, and how well
// any of them does.

const FORMAT = { dtype: 'F32', maxShardBytes: Infinity, onnx: false } as const;
const WARM = 'warm';

/** Trains the warm start, and puts it into a new folder that everybody begins with. */
export const trainWarmStart = (folder: string, options: BenchOptions): Promise<void> =>
  withInstallation(options, async (client, { settings }) => {
    const { result } = await durableRun(client, warmStartSpec(options.quick), options);
    if (result.reference === null) throw new Error('the run ended before its warm start had');
    const store = await ObjectStore.connect(settings.store);
    await exportModel(store, result.reference, folder, FORMAT).finally(() => store.close());
  });

export interface OwnRun {
  /** Wall seconds of each RL step; the first from the start of the workflow. */
  stepSeconds: number[];
  /** Checkpoints as folders, and wall seconds of training until they were there. */
  snapshots: { step: number; seconds: number; folder: string }[];
  /** Of servers and workers, all together. */
  peakBytes: number;
}

/**
 * A durable run of `steps` RL steps from the model in the folder `warm`, by new servers and workers. Its time is the
 * workflow's: with orchestration, checkpoints, and what starts up at the first step. Every `everySteps`-th checkpoint is
 * put below `folder`, afterwards.
 */
export function ownRun(
  { warm, folder, steps, everySteps }: { warm: string; folder: string; steps: number; everySteps: number },
  options: BenchOptions,
): Promise<OwnRun> {
  const others = peakBytesOfDescendants();
  return withInstallation(options, async (client, { settings }) => {
    const store = await ObjectStore.connect(settings.store);
    try {
      await importModel(store, warm, WARM);
      const { handle } = await durableRun(client, rlSpec(options.quick, WARM, steps, everySteps), options);
      const peakBytes = peakBytesOfDescendants() - others;
      const reports = signalsOf(await handle.fetchHistory(), 'stepReported').slice(0, steps);
      if (reports.length < steps) throw new Error(`the run did ${reports.length} of ${steps} steps`);
      const started = Number((await handle.describe()).startTime);
      const seconds = reports.map(({ at }) => (at - started) / 1000);
      const snapshots: OwnRun['snapshots'] = [];
      for (let step = everySteps; step <= steps; step += everySteps) {
        const { checkpoint } = reports[step - 1]!.value as StepReport;
        const target = path.join(folder, `step-${step}`);
        await exportModel(store, checkpoint, target, FORMAT);
        snapshots.push({ step, seconds: seconds[step - 1]!, folder: target });
      }
      return { stepSeconds: seconds.map((at, i) => at - (seconds[i - 1] ?? 0)), snapshots, peakBytes };
    } finally {
      store.close();
    }
  });
}

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
  withEmptyStore(options, async (settings) => {
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
