import { readFileSync } from 'node:fs';
import path from 'node:path';
import { GradusError } from '../../../core/errors.ts';
import type { Limits, Link, Mount, Ran } from '../../sandbox/contract.ts';
import { inTurn } from '../../sandbox/in-turn.ts';
import { openSandbox } from '../../sandbox/open-sandbox.ts';

/** The source of a program in `python/`. */
export const pythonProgram = (name: string): string =>
  readFileSync(path.join(import.meta.dirname, 'python', `${name}.py`), 'utf8');

/** Python with nothing of its own but the standard library, and with the same order of sets each time. */
export const PYTHON_ALONE = {
  argv: ['python3', '-s', '-S', '-B', '-c'],
  env: { PYTHONHASHSEED: '0' },
} as const;

/** What runs in a sandbox cannot end it from outside. */
export const sandboxKilled = (): GradusError =>
  new GradusError('infra', 'sandbox-killed', 'A sandbox was killed from outside.', { retryable: true });

export interface PythonRun {
  program: string;
  /** Given to it as JSON on stdin. */
  request: unknown;
  mounts?: readonly Mount[];
  links?: readonly Link[];
  limits?: Partial<Limits>;
  /** Ends it. Left out for what is in its turn already, and is seen to its end. */
  signal: AbortSignal | undefined;
}

/** What the program printed after the line with which it said that it was ready. */
interface Answer {
  /** The last line; null where it came to no good end. */
  answer: unknown;
  /** Those before. */
  lines: readonly string[];
  ended: Ran['ended'];
}

/**
 * Runs one of our programs in the sandbox, beside code that nobody trusts. A program that never got ready was not stopped
 * by that code: GradusError('infra', 'sandboxed-program', retryable).
 */
export async function runPython({
  program,
  request,
  mounts = [],
  links = [],
  limits,
  signal,
}: PythonRun): Promise<Answer> {
  const sandbox = await openSandbox();
  const run = (): Promise<Ran> =>
    sandbox.run({
      // Isolated: neither the environment nor the folder where it is started says what it imports.
      argv: ['python3', '-I', '-B', '-c', program],
      stdin: JSON.stringify(request),
      mounts,
      links,
      limits: { outputBytes: 4 * 2 ** 20, ...limits },
      ...(signal && { signal }),
    });
  const ran = await (signal ? inTurn(signal, run) : run());
  const [first, ...lines] = ran.stdout.split('\n').slice(0, -1);
  if (first !== 'ready') {
    throw new GradusError(
      'infra',
      'sandboxed-program',
      `A program did not start in the sandbox (${ran.ended}, exit ${ran.exit}): ${ran.stderr.slice(-500)}`,
      { retryable: true },
    );
  }
  if (ran.ended === 'killed') throw sandboxKilled();
  const { ended } = ran;
  const text = lines.at(-1);
  try {
    if (ended === 'exit' && text)
      return { answer: JSON.parse(text) as unknown, lines: lines.slice(0, -1), ended };
  } catch {
    // The code beside it wrote in its place, or cut it short.
  }
  return { answer: null, lines, ended };
}
