import { spawn } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import calculator from '../examples/calculator.json' with { type: 'json' };
import { GradusError } from '../core/errors.ts';
import { OWN_LOADER, ownModule } from '../engine/own-module.ts';
import type { BenchOptions } from './bench.ts';
import { benchRow } from './bench-row.ts';
import type { BenchRow } from './bench-row.ts';
import { withTemporaryFolder } from './durable-run.ts';
import { shareBytesOfDescendants } from './processes.ts';

const LOOK_EVERY_MS = 1000;
/** From the command's start on: past the first evaluations, where every process has worked. */
const WATCH_MS = 120_000;
const MODULE = path.resolve(import.meta.dirname, '../examples/environment.ts');

interface Most {
  processes: number;
  megabytes: number;
}

/** The processes of `train`, the command itself with them, and the memory that they share out among them. Linux only. */
export async function* footprintBench(options: BenchOptions): AsyncGenerator<BenchRow> {
  const { quick, say, runs = 1 } = options;
  for (const [name, modules] of [
    ['calculator', ''],
    ['an environment of a project', MODULE],
  ] as const) {
    const most: Most[] = [];
    for (let run = 1; run <= runs; run++) {
      most.push(await watched(modules, quick ? WATCH_MS / 4 : WATCH_MS, options));
      say(`${name}: ${most.at(-1)!.processes} processes, ${most.at(-1)!.megabytes.toFixed(0)} MB`);
    }
    const row = (what: string, unit: string, of: (one: Most) => number): BenchRow =>
      benchRow({
        bench: 'footprint',
        case: `train, ${name}: ${what}`,
        unit,
        better: 'less',
        ours: most.map(of),
        anchor: null,
      });
    yield row('most processes at once', 'processes', (one) => one.processes);
    yield row('most memory at once (proportional share)', 'MB', (one) => one.megabytes);
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

async function watched(modules: string, ms: number, { say, signal }: BenchOptions): Promise<Most> {
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
    const most: Most = { processes: 0, megabytes: 0 };
    try {
      for (const end = performance.now() + ms; performance.now() < end;) {
        await delay(LOOK_EVERY_MS, undefined, { signal });
        if (child.exitCode !== null)
          throw new GradusError('infra', 'bench', `the command ended by itself:\n${said}`);
        const shares = shareBytesOfDescendants(child.pid!);
        most.processes = Math.max(most.processes, shares.length);
        most.megabytes = Math.max(most.megabytes, shares.reduce((sum, share) => sum + share, 0) / 2 ** 20);
      }
      say(said.trimEnd().split('\n').at(-1)!);
      return most;
    } finally {
      child.kill('SIGINT');
      await ended;
    }
  });
}
