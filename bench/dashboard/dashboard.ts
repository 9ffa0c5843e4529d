import { fork } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { TYPESCRIPT } from '../../engine/own-module.ts';
import { startStack } from '../../infra/dev/stack.ts';
import { stackEnvironment } from '../../infra/dev/stack-addresses.ts';
import { ObjectStore } from '../../store/objects/object-store.ts';
import { readSettings } from '../../workers/settings.ts';
import { benchRow } from '../bench-row.ts';
import type { BenchRow } from '../bench-row.ts';
import type { BenchOptions } from '../bench.ts';
import { withTemporaryFolder } from '../durable-run.ts';
import type { FromDashboardProcess } from './dashboard-process.ts';
import { keepMadeRun } from './keep-made-run.ts';
import { MADE_STAGE } from './made-run.ts';

const RUN = 'made';
const SIZES = {
  full: { steps: 1000, groups: 32, samples: 16 },
  quick: { steps: 40, groups: 4, samples: 8 },
};
const RUNS = { full: 9, quick: 3 };

/** What a page may take, milliseconds, and the heap of the process, megabytes. */
const BOUNDS = { run: 1000, step: 500, find: 2000, heap: 200 };

/** Of different kinds: everything, by columns of each kind, by names, and sorted by what has to be compared. */
const QUERIES = [
  '',
  'level=3&max-reward=0',
  'error=unknown-tool&tool=calculator',
  'sort=tokens&order=descending&outcome=failed',
  'sort=reward&order=descending&min-turns=3&split=train',
];

const DASHBOARD_PROCESS = fileURLToPath(new URL('dashboard-process.ts', import.meta.url));
const LOOK_AGAIN = 'being read for the first time';

/**
 * How long pages of a run of 1,000 steps with 512 episodes each take (ours), against what a page may take (anchor): the
 * dashboard in a process of its own, with Temporal and an object store on this machine. First looks, for which everything
 * has to be read, have no bound and are told as well. The run is one that Temporal has forgotten. Takes some ten minutes,
 * most of them to make the run.
 */
export async function* dashboardBench(options: BenchOptions): AsyncGenerator<BenchRow> {
  const { quick, say, signal } = options;
  const size = quick ? SIZES.quick : SIZES.full;
  const runs = options.runs ?? (quick ? RUNS.quick : RUNS.full);
  const rows = await withTemporaryFolder(async (folder) => {
    const stack = await startStack(path.join(folder, 'state'), { ui: false, onEvent: say });
    try {
      const env = stackEnvironment(stack);
      const store = await ObjectStore.connect(readSettings(env).store);
      try {
        const said = (step: number): void => {
          signal.throwIfAborted();
          if (step % 100 === 0) say(`${step} of ${size.steps} steps are made`);
        };
        await keepMadeRun(store, RUN, size, { said });
      } finally {
        store.close();
      }
      return await measured(
        { ...env, GRADUS_CACHE: path.join(folder, 'cache') },
        { runs, size, say, signal },
      );
    } finally {
      await stack.stop();
    }
  });
  yield* rows;
}

async function measured(
  env: Record<string, string>,
  {
    runs,
    size,
    say,
    signal,
  }: Pick<BenchOptions, 'say' | 'signal'> & { runs: number; size: (typeof SIZES)['full'] },
): Promise<BenchRow[]> {
  const child = fork(DASHBOARD_PROCESS, [], {
    execArgv: ['--import', TYPESCRIPT],
    env: { ...process.env, ...env },
    stdio: ['ignore', process.stderr, process.stderr, 'ipc'],
    detached: true,
  });
  const exited = once(child, 'exit');
  const kill = (): void => void child.kill('SIGKILL');
  signal.addEventListener('abort', kill, { once: true });
  try {
    const url = await heard(child, 'ready').then((ready) => ready.url);
    const page = (of: string): Promise<Looked> => looked(new URL(of, url), signal);
    const of = `${size.steps} steps × ${size.groups * size.samples} episodes`;
    const row = (name: string, unit: string, ours: number[], anchor: number | null): BenchRow =>
      benchRow({ bench: 'dashboard', case: `${name}, ${of}`, unit, better: 'less', ours, anchor });
    const step = (run: number): string => `/runs/${RUN}/steps/${MADE_STAGE}/${1 + ((run * 37) % size.steps)}`;
    const rows: BenchRow[] = [];

    say('first looks');
    rows.push(row('run, first look', 'ms', [(await page(`/runs/${RUN}`)).ms], null));
    rows.push(row('step, first look', 'ms', [(await page(step(0))).ms], null));
    const begun = performance.now();
    while ((await page(`/find?run=${RUN}`)).body.includes(LOOK_AGAIN))
      await delay(250, undefined, { signal });
    rows.push(row('find, until all trajectories are read', 'ms', [performance.now() - begun], null));

    say('later looks');
    const times = { run: [] as number[], step: [] as number[], find: [] as number[] };
    for (let run = 1; run <= runs; run++) {
      // What a poll has just read is not read again: others look after it.
      await delay(3000, undefined, { signal });
      times.run.push((await page(`/runs/${RUN}`)).ms);
      times.step.push((await page(step(run))).ms);
      times.find.push((await page(`/find?run=${RUN}&${QUERIES[run % QUERIES.length]}`)).ms);
    }
    rows.push(row('run', 'ms', times.run, BOUNDS.run));
    rows.push(row('step', 'ms', times.step, BOUNDS.step));
    rows.push(row('find by facts', 'ms', times.find, BOUNDS.find));
    const heap = heard(child, 'heap');
    child.send('heap');
    rows.push(row('most heap of the process', 'MB', [(await heap).peakMegabytes], BOUNDS.heap));
    child.disconnect();
    await exited;
    return rows;
  } catch (error) {
    kill();
    await exited;
    signal.throwIfAborted();
    throw error;
  } finally {
    signal.removeEventListener('abort', kill);
  }
}

interface Looked {
  ms: number;
  body: string;
}

async function looked(url: URL, signal: AbortSignal): Promise<Looked> {
  const begun = performance.now();
  const response = await fetch(url, { signal });
  const body = await response.text();
  const ms = performance.now() - begun;
  if (response.ok && body.includes(RUN)) return { ms, body };
  throw new Error(`${url.pathname} answered ${response.status}: ${body.slice(0, 2000)}`);
}

/** The next message of this kind; rejects when the process ends before. */
function heard<Kind extends FromDashboardProcess['kind']>(
  child: ChildProcess,
  kind: Kind,
): Promise<Extract<FromDashboardProcess, { kind: Kind }>> {
  return new Promise((resolve, reject) => {
    const onMessage = (message: FromDashboardProcess): void => {
      if (message.kind !== kind) return;
      child.off('message', onMessage);
      resolve(message as Extract<FromDashboardProcess, { kind: Kind }>);
    };
    child.on('message', onMessage);
    child.once('exit', (code) => reject(new Error(`the dashboard's process ended with ${code}`)));
  });
}
