import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type { SandboxBackend } from '../environments/sandbox/contract.ts';
import { openSandbox, sandboxFacts } from '../environments/sandbox/open-sandbox.ts';
import { interleavedRuns, benchRowsOf } from './bench.ts';
import type { Bench } from './bench.ts';

const PROGRAMS: Readonly<Record<string, readonly [string, ...string[]]>> = {
  true: ['true'],
  python: ['/usr/bin/python3', '-c', 'print(1)'],
  node: ['node', '-e', 'console.log(1)'],
};
/** What the backends run that have one language only. */
const LANGUAGE: Partial<Record<SandboxBackend, string>> = { 'wasi-python': 'python', quickjs: 'node' };

/**
 * What a sandbox adds to a program that does nothing: milliseconds from asking to the answer, in each sandbox that works
 * here (ours) and as a plain child process (anchor), in turn.
 */
export const sandboxBench: Bench = async function* (options) {
  const runs = options.runs ?? (options.quick ? 5 : 41);
  for (const { name, works, missing } of await sandboxFacts()) {
    if (!works) {
      options.say(`${name} is left out: ${missing}`);
      continue;
    }
    const sandbox = await openSandbox({ prefer: name });
    for (const [program, argv] of Object.entries(PROGRAMS)) {
      if ((LANGUAGE[name] ?? program) !== program) continue;
      const [file, ...args] = argv;
      const { plain, sandboxed } = await interleavedRuns(
        `${program} in ${name}`,
        {
          plain: () => milliseconds(() => promisify(execFile)(file, args)),
          sandboxed: () => milliseconds(() => sandbox.run({ argv })),
        },
        (ms) => `${ms.toFixed(0)} ms`,
        { ...options, runs },
      );
      yield benchRowsOf('sandbox')(`${program} in ${name}`, 'ms', 'less', sandboxed, plain);
    }
  }
};

async function milliseconds(work: () => Promise<unknown>): Promise<number> {
  const started = performance.now();
  await work();
  return performance.now() - started;
}
