import { spawn } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import calculator from '../examples/calculator.json' with { type: 'json' };
import { GradusError } from '../core/errors.ts';
import { OWN_LOADER, ownModule } from '../engine/own-module.ts';
import type { BenchOptions } from './bench.ts';
import { benchRow, median } from './bench-row.ts';
import type { BenchRow } from './bench-row.ts';
import { withTemporaryFolder } from './durable-run.ts';
import { shareBytesOfDescendants } from './processes.ts';

const LOOK_EVERY_MS = 1000;
/** From the command's start on: past the first evaluations, where every process has worked. */
const WATCH_MS = 120_000;
const MODULE = path.resolve(import.meta.dirname, '../examples/environment.ts');

/** Medians over the second half, when nothing starts any more; of memory the most, too. */
interface Footprint {
  processes: number;
  megabytes: number;
  most: number;
}

/** The processes of `train`, the command itself with them, and the memory that they share out among them. Linux only. */
export async function* footprintBench(options: BenchOptions): AsyncGenerator<BenchRow> {
  const { quick, say, runs = 1 } = options;
  for (const [name, modules] of [
    ['calculator', ''],
    ['project', MODULE],
  ] as const) {
    if (options.only && !options.only.includes(name)) continue;
    const seen: Footprint[] = [];
    for (let run = 1; run <= runs; run++) {
      const one = await watched(modules, quick ? WATCH_MS / 4 : WATCH_MS, options);
      say(`${name}: ${one.processes} processes, ${one.megabytes.toFixed(0)} MB`);
      seen.push(one);
    }
    const row = (what: string, unit: string, of: (one: Footprint) => number): BenchRow =>
      benchRow({
        bench: 'footprint',
        case: `train, environment of ${name === 'project' ? 'a project' : 'Gradus'}: ${what}`,
        unit,
        better: 'less',
        ours: seen.map(of),
        anchor: null,
      });
    yield row('processes', 'processes', (one) => one.processes);
    yield row('memory (proportional shares)', 'MB', (one) => one.megabytes);
    yield row('most memory at once', 'MB', (one) => one.most);
  }
}

/** As the demo's, of words spelled backwards. */
function specOf(modules: string): unknown {
  if (modules === '') return calculator;
  const tasks = [{ environment: 'backwards', levels: [3, 4] }];
  return {
    ...calculator,
    reward: { components: [{ verifier: 'exact-match', role: 'outcome' }] },
    stages: calculator.stages.map((stage) => ({ ...stage, tasks })),
    evaluation: { ...calculator.evaluation, tasks },
  };
}

async function watched(modules: string, ms: number, { say, signal }: BenchOptions): Promise<Footprint> {
  return withTemporaryFolder(async (folder) => {
    const spec = path.join(folder, 'spec.json');
    await writeFile(spec, JSON.stringify(specOf(modules)));
    const command = [...OWN_LOADER, ownModule('../cli/gradus', import.meta.url), 'train', spec];
    const child = spawn(process.execPath, [...command, '--state-dir', path.join(folder, 'state')], {
      env: { ...process.env, GRADUS_ENVIRONMENTS: modules },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    let said = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => (said = (said + text).slice(-2000)));
    const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
    const looks: number[][] = [];
    try {
      for (const end = performance.now() + ms; performance.now() < end;) {
        await delay(LOOK_EVERY_MS, undefined, { signal });
        if (child.exitCode !== null)
          throw new GradusError('infra', 'bench', `the command ended by itself:\n${said}`);
        looks.push(shareBytesOfDescendants(child.pid!));
      }
      say(said.trimEnd().split('\n').at(-1)!);
      const megabytes = looks.map((shares) => shares.reduce((sum, share) => sum + share, 0) / 2 ** 20);
      const later = looks.length >> 1;
      return {
        processes: median(looks.slice(later).map(({ length }) => length)),
        megabytes: median(megabytes.slice(later)),
        most: Math.max(...megabytes),
      };
    } finally {
      child.kill('SIGINT');
      await ended;
    }
  });
}
