import path from 'node:path';
import { exportModel } from '../../../cli/export-model.ts';
import type { StepReport } from '../../../core/ports.ts';
import { ObjectStore } from '../../../store/objects/object-store.ts';
import { importModel } from '../../../store/training/import-model.ts';
import type { BenchOptions } from '../../bench.ts';
import { signalsOf } from '../../../test/support/histories.ts';
import { durableRun, withInstallation } from '../../installations.ts';
import { peakBytesOfDescendants } from '../../processes.ts';
import { rlSpec, warmStartSpec } from './specs.ts';

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
