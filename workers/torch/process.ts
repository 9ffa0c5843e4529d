import { spawn } from 'node:child_process';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { inheritedEnvironment } from '../inherited-environment.ts';
import { settingsToEnv } from '../settings.ts';
import type { WorkerSettings } from '../settings.ts';
import type { ProcessKind } from '../supervised-process.ts';

const MAIN = path.resolve(import.meta.dirname, 'main.py');
/** What it says on standard output when it is ready. */
const READY = /^learner: /;

/** How Python is called for a learner of so many ranks: several are started by torchrun, and share weights and work. */
export const torchCommand = (ranks: number): string[] =>
  ranks === 1 ? [MAIN] : ['-m', 'torch.distributed.run', '--standalone', `--nproc-per-node=${ranks}`, MAIN];

/** A learner in PyTorch; `python` is the one of `npm run setup:torch`. */
export function torchProcess(
  python: string,
  settings: WorkerSettings,
  { ranks = 1, env }: { ranks?: number; env?: Record<string, string> } = {},
): ProcessKind {
  return {
    title: 'the learner in PyTorch',
    spawn: (output) =>
      spawn(python, torchCommand(ranks), {
        env: {
          ...inheritedEnvironment(),
          ...settingsToEnv(settings),
          ...env,
          PYTHONDONTWRITEBYTECODE: '1',
          GRADUS_LIFELINE: 'stdin',
        },
        // That the other side of standard input closes tells it that this process is gone.
        stdio: ['pipe', 'pipe', output],
        detached: true,
      }),
    whenReady: (child, ready) => {
      child.stdin!.on('error', () => undefined);
      createInterface({ input: child.stdout! }).on('line', (line) => {
        if (READY.test(line)) ready([line]);
      });
    },
  };
}
