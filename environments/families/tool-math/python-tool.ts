import { z } from 'zod';
import { GradusError } from '../../../core/errors.ts';
import { defineTool, ToolRefusal } from '../../contract/environment.ts';
import type { Ran } from '../../sandbox/contract.ts';
import { inTurn } from '../../sandbox/in-turn.ts';
import { openSandbox } from '../../sandbox/open-sandbox.ts';

/** Of one program, seconds: of processor time, and by the clock on a machine that does other things, too. */
const CPU_SECONDS = 3;
const WALL_SECONDS = 15;
/** Runs the program as `-c` does, its random numbers the same in each process. */
const SEEDED = `import random
random.seed(0)
del random
exec(compile(__import__('sys').argv.pop(), '<string>', 'exec'))`;
/** Programs whose output is kept: samples of a group often write the same. */
const MOST_RESULTS = 5_000;

const results = new Map<string, Ran>();

/**
 * Python in the sandbox: a fresh interpreter for each call, without files, network or environment, and random numbers that
 * begin with the same seed, so that a call depends on its code alone and can be made again; but for what a program asks of
 * the clock, of os.urandom and of addresses in memory (`id`). The policy reads what was printed, or the last line of the traceback, as in ToRL
 * (Li et al. 2025).
 */
export const pythonTool = defineTool({
  name: 'python',
  description: 'Runs a Python program and gives what it prints. Each program starts anew.',
  arguments: z.strictObject({
    code: z.string().min(1).max(8_000).describe('The program, like print(2**10)'),
  }),
  placement: 'inline',
  effect: 'pure',
  cost: { seconds: 0.05, usd: 0 },
  // Programs wait for their turn: a step's worth of endless ones is no failure of the tool.
  limits: { timeoutSeconds: 1200, maxOutputCharacters: 2_000 },
  run: async ({ code }, { signal }) => {
    // No argument of a process can have one.
    if (code.includes('\0')) throw new ToolRefusal('SyntaxError: source code cannot contain null bytes');
    const known = results.get(code);
    if (known !== undefined) return observationOf(known);
    const ran = await runProgram(code, signal);
    // Throws for a program that failed, by the clock too: only what a program printed is kept.
    const text = observationOf(ran);
    if (results.size >= MOST_RESULTS) results.delete(results.keys().next().value!);
    results.set(code, ran);
    return text;
  },
});

async function runProgram(code: string, signal: AbortSignal): Promise<Ran> {
  const sandbox = await openSandbox();
  return inTurn(signal, () =>
    sandbox.run({
      argv: ['python3', '-s', '-B', '-c', SEEDED, code],
      // Sets and dictionaries of strings in the same order each time.
      env: { PYTHONHASHSEED: '0' },
      limits: { cpuSeconds: CPU_SECONDS, wallSeconds: WALL_SECONDS, outputBytes: 16_384 },
      signal,
    }),
  );
}

const WHY: Record<Exclude<Ran['ended'], 'exit' | 'killed'>, string> = {
  'wall-time': 'took too long',
  'cpu-time': 'took too long',
  memory: 'took too much memory',
  output: 'printed too much',
};

function observationOf({ exit, ended, stdout, stderr }: Ran): string {
  if (ended === 'killed') {
    throw new GradusError('infra', 'sandbox-killed', 'A sandbox was killed from outside.', {
      retryable: true,
    });
  }
  if (ended !== 'exit') throw new ToolRefusal(`the program ${WHY[ended]}`);
  if (exit !== 0) {
    throw new ToolRefusal(stderr.trimEnd().split('\n').at(-1)!.slice(0, 300) || `exit ${exit}`);
  }
  return stdout.trimEnd() || 'nothing was printed';
}
