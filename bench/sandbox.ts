import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { openSandbox, sandboxFacts } from '../environments/sandbox/open-sandbox.ts';
import type { Backend } from '../environments/sandbox/contract.ts';
import type { BenchOptions } from './bench.ts';
import { benchRow } from './bench-row.ts';
import type { BenchRow } from './bench-row.ts';

const RUNS = 41;

const PROGRAMS: Readonly<Record<string, readonly [string, ...string[]]>> = {
  true: ['true'],
  python: ['/usr/bin/python3', '-c', 'print(1)'],
  node: ['node', '-e', 'console.log(1)'],
};
/** What the backends run that have one language only. */
const LANGUAGE: Partial<Record<Backend, string>> = { 'wasi-python': 'python', quickjs: 'node' };

/**
 * What a sandbox adds to a program that does nothing: milliseconds from asking to the answer, in each sandbox that works
 * here (ours) and as a plain child process (anchor), in turn.
 */
export async function* sandboxBench({
  quick,
  say,
  signal,
  ...options
}: BenchOptions): AsyncGenerator<BenchRow> {
  const runs = options.runs ?? (quick ? 5 : RUNS);
  for (const { name, works, missing } of await sandboxFacts()) {
    if (!works) {
      say(`${name} is left out: ${missing}`);
      continue;
    }
    const sandbox = await openSandbox({ prefer: name });
    for (const [program, argv] of Object.entries(PROGRAMS)) {
      if ((LANGUAGE[name] ?? program) !== program) continue;
      const [file, ...args] = argv;
      const [ours, anchor]: [number[], number[]] = [[], []];
      for (let run = 0; run <= runs; run++) {
        signal.throwIfAborted();
        const plain = await milliseconds(() => promisify(execFile)(file, args));
        const sandboxed = await milliseconds(() => sandbox.run({ argv }));
        if (run === 0) continue; // the first loads what the others find loaded
        anchor.push(plain);
        ours.push(sandboxed);
      }
      yield benchRow({
        bench: 'sandbox',
        case: `${program} in ${name}`,
        unit: 'ms',
        better: 'less',
        ours,
        anchor,
      });
    }
  }
}

async function milliseconds(work: () => Promise<unknown>): Promise<number> {
  const started = performance.now();
  await work();
  return performance.now() - started;
}
