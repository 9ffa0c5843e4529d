import { fork } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { TYPESCRIPT } from '../engine/own-module.ts';
import type { StepReport } from '../core/ports.ts';
import { settingsToEnv } from '../workers/settings.ts';
import { tinySpec } from '../test/support/tiny-spec.ts';
import type { BenchOptions } from './bench.ts';
import { benchRow, median } from './bench-row.ts';
import type { BenchRow } from './bench-row.ts';
import { cutCalculator, sizeOf, WARM_START } from './bench-specs.ts';
import { durableRun, withInstallation } from './durable-run.ts';
import { signalsOf } from './histories.ts';
import type { FromPlainProcess, PlainMeasurement } from './plain-process.ts';
import { withPlainStore } from './plain-store.ts';

const RUNS = 3;

/**
 * What durability costs: one training, with the same seeds, as a durable run and as a plain loop in one process. Both
 * have the same algorithm, operations, kind of store and learner process, and begin with new processes and empty
 * caches; only the plain one has no Temporal on the machine, and no worker processes. Start-up is not counted.
 * Throws when the two do not end with the same weights.
 */
export async function* orchestrationBench(options: BenchOptions): AsyncGenerator<BenchRow> {
  const { quick, say } = options;
  const runs = options.runs ?? (quick ? 1 : RUNS);
  const spec = quick ? tinySpec() : cutCalculator({ updates: 480, steps: 12, reports: 300 });
  const [plain, durable]: [PlainMeasurement[], PlainMeasurement[]] = [[], []];
  for (let run = 1; run <= runs; run++) {
    for (const [name, measure, into] of [
      ['plain', plainly, plain],
      ['durable', durably, durable],
    ] as const) {
      const measured = await measure(spec, options);
      into.push(measured);
      say(
        `${name} run ${run} of ${runs}: ${measured.seconds.toFixed(2)} s, ${stepSeconds(measured).toFixed(3)} s/step, weights ${measured.weights}`,
      );
    }
  }
  const digests = new Set([...plain, ...durable].map(({ weights }) => weights));
  if (digests.size > 1) {
    throw new Error(
      `the runs ended with different weights, so they did not do the same work: ${[...digests].join(', ')}`,
    );
  }
  say(`same final weights in all ${2 * runs} runs`);
  const row = (name: string, unit: string, of: (measured: PlainMeasurement) => number): BenchRow =>
    benchRow({
      bench: 'orchestration',
      case: name,
      unit,
      better: 'less',
      ours: durable.map(of),
      anchor: plain.map(of),
    });
  const {
    stages: [, stage],
    evaluation,
  } = spec;
  yield row(
    `durable vs plain loop, whole run: warm start, ${sizeOf(spec)}, reports of ${evaluation.count} tasks`,
    's',
    ({ seconds }) => seconds,
  );
  yield row(
    `durable vs plain loop, median RL step of ${stage.groupsPerStep} × ${stage.numGenerations} episodes`,
    's/step',
    stepSeconds,
  );
}

/** From the end of one step to the end of the next: whatever happens between steps is in it. */
function stepSeconds({ stepsDone }: PlainMeasurement): number {
  return median(stepsDone.slice(1).map((at, i) => (at - stepsDone[i]!) / 1000));
}

function durably(spec: unknown, options: BenchOptions): Promise<PlainMeasurement> {
  return withInstallation(options, async (client) => {
    const { handle, result, seconds } = await durableRun(client, spec, options);
    const reports = signalsOf(await handle.fetchHistory(), 'stepReported');
    const steps = reports.filter(({ value }) => (value as StepReport).stage !== WARM_START);
    return { seconds, weights: result.checkpoint.weights, stepsDone: steps.map(({ at }) => at) };
  });
}

const plainly = (spec: unknown, options: BenchOptions): Promise<PlainMeasurement> =>
  withPlainStore(options, (settings) => inProcess(spec, settingsToEnv(settings), options.signal));

const PLAIN_PROCESS = fileURLToPath(new URL('plain-process.ts', import.meta.url));

async function inProcess(
  spec: unknown,
  env: Record<string, string>,
  signal: AbortSignal,
): Promise<PlainMeasurement> {
  signal.throwIfAborted();
  const child = fork(PLAIN_PROCESS, [], {
    execArgv: ['--import', TYPESCRIPT],
    env: { ...process.env, ...env },
    // Its output must not get among the rows.
    stdio: ['ignore', process.stderr, process.stderr, 'ipc'],
    // A group of its own: a Ctrl-C is for the one who waits for it.
    detached: true,
  });
  const exited = once(child, 'exit');
  const kill = (): void => void child.kill('SIGKILL');
  signal.addEventListener('abort', kill, { once: true });
  try {
    const measured = await conversation(child, spec);
    await exited;
    return measured;
  } catch (error) {
    kill();
    await exited;
    signal.throwIfAborted();
    throw error;
  } finally {
    signal.removeEventListener('abort', kill);
  }
}

function conversation(child: ChildProcess, spec: unknown): Promise<PlainMeasurement> {
  return new Promise((resolve, reject) => {
    child.on('message', (message: FromPlainProcess) => {
      if (message.kind === 'ready') child.send(spec as object);
      else resolve(message);
    });
    child.once('error', reject);
    child.once('exit', (code, reason) =>
      reject(new Error(`the plain run ended early (${reason ?? `exit ${code}`}); its words are above`)),
    );
  });
}
