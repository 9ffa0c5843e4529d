import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { stackEnvironment } from '../../infra/dev/stack-addresses.ts';
import { startStack } from '../../infra/dev/stack.ts';
import { ObjectStore } from '../../store/objects/object-store.ts';
import { readSettings } from '../../workers/settings.ts';
import { closing, benchRowsOf } from '../bench.ts';
import type { Bench, BenchOptions, BenchRow } from '../bench.ts';
import { Child } from '../child.ts';
import { withTemporaryFolder } from '../installations.ts';
import { keepMadeRun } from '../../test/support/keep-made-run.ts';
import { MADE_STAGE } from '../../test/support/made-run.ts';
import type { MadeSize } from '../../test/support/made-run.ts';

const RUN = 'made';
const SIZES = {
  full: { steps: 1000, groups: 32, samples: 16, runs: 9 },
  quick: { steps: 40, groups: 4, samples: 8, runs: 3 },
};

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
const LOOK_AGAIN = 'being read for the first time';

/**
 * How long pages of a run of 1,000 steps with 512 episodes each take (ours), against what a page may take (anchor): the
 * dashboard in a process of its own, with Temporal and an object store on this machine. First looks, for which everything
 * has to be read, have no bound and are told as well. The run is one that Temporal has forgotten. Takes some ten minutes,
 * most of them to make the run.
 */
export const dashboardBench: Bench = async function* (options) {
  const { say, signal } = options;
  const size = options.quick ? SIZES.quick : SIZES.full;
  yield* await withTemporaryFolder(async (folder) => {
    const stack = await startStack(path.join(folder, 'state'), { ui: false, onEvent: say });
    try {
      const env = { ...process.env, ...stackEnvironment(stack), GRADUS_CACHE: path.join(folder, 'cache') };
      const store = await ObjectStore.connect(readSettings(env).store);
      const said = (step: number): void => {
        signal.throwIfAborted();
        if (step % 100 === 0) say(`${step} of ${size.steps} steps are made`);
      };
      await keepMadeRun(store, RUN, size, { said }).finally(() => store.close());
      const child = Child.own('dashboard/dashboard-process.ts', { env, signal });
      return await closing(measured(child, options.runs ?? size.runs, size, options), () => child.close());
    } finally {
      await stack.stop();
    }
  });
};

async function measured(child: Child, runs: number, size: MadeSize, { say, signal }: BenchOptions) {
  const { url } = (await child.call('where')) as unknown as { url: string };
  const page = (of: string): Promise<Looked> => looked(new URL(of, url), signal);
  const rows: BenchRow[] = [];
  const row = (name: string, unit: string, ours: number[], bound: number | null = null): void => {
    const of = `${size.steps} steps × ${size.groups * size.samples} episodes`;
    rows.push(benchRowsOf('dashboard')(`${name}, ${of}`, unit, 'less', ours, bound));
  };
  const step = (run: number): string => `/runs/${RUN}/steps/${MADE_STAGE}/${1 + ((run * 37) % size.steps)}`;

  say('first looks');
  row('run, first look', 'ms', [(await page(`/runs/${RUN}`)).ms]);
  row('step, first look', 'ms', [(await page(step(0))).ms]);
  const begun = performance.now();
  while ((await page(`/find?run=${RUN}`)).body.includes(LOOK_AGAIN)) await delay(250, undefined, { signal });
  row('find, until all trajectories are read', 'ms', [performance.now() - begun]);

  say('later looks');
  const times = { run: [] as number[], step: [] as number[], find: [] as number[] };
  for (let run = 1; run <= runs; run++) {
    // What a poll has just read is not read again: others look after it.
    await delay(3000, undefined, { signal });
    times.run.push((await page(`/runs/${RUN}`)).ms);
    times.step.push((await page(step(run))).ms);
    times.find.push((await page(`/find?run=${RUN}&${QUERIES[run % QUERIES.length]}`)).ms);
  }
  row('run', 'ms', times.run, BOUNDS.run);
  row('step', 'ms', times.step, BOUNDS.step);
  row('find by facts', 'ms', times.find, BOUNDS.find);
  const { peakMegabytes } = (await child.call('heap')) as unknown as { peakMegabytes: number };
  row('most heap of the process', 'MB', [peakMegabytes], BOUNDS.heap);
  return rows;
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
