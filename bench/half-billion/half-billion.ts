import { execFile, fork } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { TYPESCRIPT } from '../../engine/own-module.ts';
import type { Installation } from '../../cli/stack-with-workers.ts';
import { ids } from '../../core/names.ts';
import { totalTime } from '../../core/time/time-split.ts';
import { killInActivity } from '../../test/support/kill-workers.ts';
import { RunClient } from '../../test/support/run-client.ts';
import { writeTinyQwen } from '../../test/support/tiny-qwen.ts';
import { settingsToEnv } from '../../workers/settings.ts';
import type { StepReport } from '../../core/ports.ts';
import type { Bench, BenchOptions } from '../bench.ts';
import { benchRow } from '../bench-row.ts';
import type { BenchRow } from '../bench-row.ts';
import { durableRun, withInstallation, withTemporaryFolder } from '../durable-run.ts';
import type { DurableRun } from '../durable-run.ts';
import { calculatorTokenizer } from '../engine/calculator-scripts.ts';
import { signalsOf } from '../histories.ts';
import { watchMemory } from './memory.ts';
import type { MemoryPeaks } from './memory.ts';
import type { PartMeasurement } from './part-process.ts';
import { runSpec, STEPS } from './spec.ts';

const MAKE_FULL_SIZE = fileURLToPath(new URL('../../test/parity/models/make-full-size.ts', import.meta.url));
const PART_PROCESS = fileURLToPath(new URL('part-process.ts', import.meta.url));
/** In which the runs come to what is to be killed. */
const A_WHILE_MS = 1_200_000;

/**
 * A model of Qwen2.5-0.5B's shape with random weights, as a user would bring it: what each part of its training by LoRA
 * costs, and a durable run of a few steps, once left alone and once with its rollout worker and its learner killed.
 * Needs 23 GB of free memory; `quick` has a model of some thousand weights.
 * Throws when the two runs do not end with the same weights.
 */
export const halfBillionBench: Bench = (options) => measured(options);

async function* measured(options: BenchOptions): AsyncGenerator<BenchRow> {
  const rows: BenchRow[] = [];
  const row = (name: string, value: number, unit: string): void => {
    options.say(`  ${name}: ${value.toPrecision(4)} ${unit}`);
    const better = unit === 'tokens/s' ? 'more' : 'less';
    rows.push(benchRow({ bench: 'half-billion', case: name, unit, better, ours: [value], anchor: null }));
  };
  await withTemporaryFolder(async (scratch) => {
    const folder = path.join(scratch, 'model');
    if (options.quick) await writeTinyQwen(folder, calculatorTokenizer(), { maxPositions: 256 });
    else await promisify(execFile)(process.execPath, ['--import', TYPESCRIPT, MAKE_FULL_SIZE, folder]);
    const env = { GRADUS_ENVIRONMENTS: fileURLToPath(new URL('babble.ts', import.meta.url)) };
    await withInstallation({ ...options, env }, async (client, installation) => {
      for (const part of ['import', 'decode', 'learn'] as const) {
        const { figures, peakMegabytes } = await inProcess(part, folder, installation, options);
        for (const figure of figures) row(figure.case, figure.value, figure.unit);
        row(`memory of a process that does no more than ${part}`, peakMegabytes, 'MB');
      }
      const runs = await RunClient.connect(installation.settings);
      try {
        const alone = watchMemory();
        const leftAlone = await durableRun(client, runSpec(), { ...options, workflowId: 'left-alone' });
        await tellRun('left alone', leftAlone, await alone.stop(), row);

        const around = watchMemory();
        const run = durableRun(client, runSpec(), { ...options, workflowId: 'killed' });
        const { workers } = installation;
        const kills = async (): Promise<void> => {
          const group = (step: number) => ids.group('killed', 'rl', step, 0);
          await killInActivity({ workers, runs }, group, 'advance', 'rollout', A_WHILE_MS);
          await killInActivity(
            { workers, runs },
            () => ids.stage('killed', 'rl'),
            'trainStep',
            'learner',
            A_WHILE_MS,
          );
        };
        const [killed] = await Promise.all([run, kills()]);
        await tellRun('rollout worker and learner killed', killed, await around.stop(), row);

        const [ours, theirs] = [leftAlone, killed].map(({ result }) => result.checkpoint.weights);
        if (ours !== theirs)
          throw new Error(`the run left alone ended with ${ours}, the killed one with ${theirs}`);
        options.say(`same final weights: ${ours}`);
      } finally {
        await runs.close();
      }
    });
  });
  yield* rows;
}

async function tellRun(
  how: string,
  { handle, result, seconds }: DurableRun,
  { byProcess, together }: MemoryPeaks,
  row: (name: string, value: number, unit: string) => void,
): Promise<void> {
  const steps = signalsOf(await handle.fetchHistory(), 'stepReported').map(
    ({ value }) => value as StepReport,
  );
  // What no learner step was made of would show nothing.
  const learnt = steps.filter(({ metrics }) => metrics !== null).length;
  if (result.end === 'stopped' || learnt !== STEPS) {
    throw new Error(`the run ${how} came to "${result.end}" with ${learnt} of ${STEPS} learner steps`);
  }
  row(`run ${how}: ${STEPS} steps of 2 × 4 episodes of 32 tokens, and reports`, seconds, 's');
  for (const { stageStep, seconds: split } of steps) {
    const parts = Object.entries(split).map(([part, value]) => `${part} ${value.toFixed(1)}`);
    row(`run ${how}, step ${stageStep}: ${parts.join(', ')}`, totalTime(split), 's');
  }
  for (const [what, megabytes] of byProcess)
    row(`run ${how}, memory of ${what} at its peak`, megabytes, 'MB');
  row(`run ${how}, memory of all processes at one moment`, together, 'MB');
}

/** Measures one part in a process of its own, killed when a person has had enough. */
async function inProcess(
  part: string,
  folder: string,
  { settings }: Installation,
  { signal }: BenchOptions,
): Promise<PartMeasurement> {
  signal.throwIfAborted();
  const child = fork(PART_PROCESS, [part, folder], {
    execArgv: ['--import', TYPESCRIPT],
    env: { ...process.env, ...settingsToEnv(settings) },
    // Its output must not get among the rows.
    stdio: ['ignore', process.stderr, process.stderr, 'ipc'],
    detached: true,
  });
  const kill = (): void => void child.kill('SIGKILL');
  signal.addEventListener('abort', kill, { once: true });
  try {
    const answer = once(child, 'message') as Promise<[PartMeasurement]>;
    const ended = once(child, 'exit').then(([code, by]: (number | string | null)[]) => {
      throw new Error(`the process of "${part}" ended (${by ?? code}) without an answer`);
    });
    const [measurement] = await Promise.race([answer, ended]);
    return measurement;
  } finally {
    signal.removeEventListener('abort', kill);
    kill();
    signal.throwIfAborted();
  }
}
