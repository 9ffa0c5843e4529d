import { spawn } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { GradusError } from '../core/errors.ts';
import { median } from '../core/statistics/median.ts';
import { OWN_LOADER, ownModule } from '../engine/own-module.ts';
import calculator from '../examples/calculator.json' with { type: 'json' };
import { interleavedRuns, benchRowsOf, chosenNames } from './bench.ts';
import type { Bench, BenchOptions } from './bench.ts';
import { withTemporaryFolder } from './installations.ts';
import { shareBytesOfDescendants, sum } from './processes.ts';

const LOOK_EVERY_MS = 1000;
/** From the command's start on: past the first evaluations, where every process has worked. */
const WATCH_MS = 120_000;
const MODULE = path.resolve(import.meta.dirname, '../examples/environment.ts');

/** The processes of `train`, the command itself with them, and the memory that they share out among them. Linux only. */
export const footprintBench: Bench = async function* (options) {
  const { quick, runs = 1 } = options;
  const names = chosenNames(['calculator', 'project'], options);
  for (const [name, whose, modules] of [
    ['calculator', 'Gradus', ''],
    ['project', 'a project', MODULE],
  ] as const) {
    if (!names.includes(name)) continue;
    const { seen } = await interleavedRuns(
      name,
      { seen: () => watched(modules, quick ? WATCH_MS / 4 : WATCH_MS, options) },
      ({ processes, megabytes }) => `${processes} processes, ${megabytes.toFixed(0)} MB`,
      { ...options, runs, warmUps: 0 },
    );
    for (const [what, unit, of] of [
      ['processes', 'processes', 'processes'],
      ['memory (proportional shares)', 'MB', 'megabytes'],
      ['most memory at once', 'MB', 'most'],
    ] as const)
      yield benchRowsOf('footprint')(
        `train, environment of ${whose}: ${what}`,
        unit,
        'less',
        seen.map((one) => one[of]),
      );
  }
};

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

/** Medians over the second half, when nothing starts any more; of memory the most, too. */
async function watched(modules: string, ms: number, { say, signal }: BenchOptions) {
  return withTemporaryFolder(async (folder) => {
    const spec = path.join(folder, 'spec.json');
    await writeFile(spec, JSON.stringify(specOf(modules)));
    const command = [...OWN_LOADER, ownModule('../cli/gradus', import.meta.url), 'train', spec];
    const child = spawn(process.execPath, [...command, '--state-dir', path.join(folder, 'state')], {
      env: { ...process.env, GRADUS_ENVIRONMENTS: modules },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    let message = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => (message = (message + text).slice(-2000)));
    const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
    const looks: number[][] = [];
    try {
      for (const end = performance.now() + ms; performance.now() < end;) {
        await delay(LOOK_EVERY_MS, undefined, { signal });
        if (child.exitCode !== null)
          throw new GradusError('infra', 'bench', `the command ended by itself:\n${message}`);
        looks.push(shareBytesOfDescendants(child.pid!));
      }
      say(message.trimEnd().split('\n').at(-1)!);
      const megabytes = looks.map((shares) => sum(shares) / 2 ** 20);
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
