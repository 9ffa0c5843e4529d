import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import path from 'node:path';
import { createInterface } from 'node:readline';
import type { Duplex } from 'node:stream';
import type { Tier } from '../../../core/episode/outcome.ts';
import { inheritedEnvironment } from '../../../workers/inherited-environment.ts';
import { settingsToEnv } from '../../../workers/settings.ts';
import type { WorkerSettings } from '../../../workers/settings.ts';
import type { ProcessKind } from '../../../workers/supervised-process.ts';

/** The tiers that the chemistry worker can serve. */
export const CHEMISTRY_TIERS = ['simulation', 'high-fidelity'] as const satisfies readonly Tier[];
export type ChemistryTier = (typeof CHEMISTRY_TIERS)[number];

/** The variable that tells where the Python with the chemistry packages is. */
export const CHEMISTRY_PYTHON = 'GRADUS_CHEMISTRY_PYTHON';

const MODULES = path.resolve(import.meta.dirname, '..');
const LIFELINE = 3;

/** A Python process that serves chemistry tiers; `python` is what `ensureChemistry` returns. */
export function chemistryProcess(
  python: string,
  settings: WorkerSettings,
  options: { tiers?: readonly ChemistryTier[]; env?: Record<string, string> } = {},
): ProcessKind {
  const { tiers = CHEMISTRY_TIERS, env } = options;
  return {
    title: `the chemistry worker for ${tiers.join(', ')}`,
    spawn: (output) =>
      spawn(python, ['-m', 'chemistry', ...tiers], {
        env: {
          ...inheritedEnvironment(),
          ...settingsToEnv(settings),
          ...env,
          PYTHONPATH: MODULES,
          PYTHONDONTWRITEBYTECODE: '1',
          GRADUS_LIFELINE_FD: String(LIFELINE),
        },
        // Down the fourth it says that it is ready; that the other side closes tells it that this process is gone.
        stdio: ['ignore', output, output, 'pipe'],
        detached: true,
      }),
    whenReady: (child: ChildProcess, ready) => {
      const lifeline = child.stdio[LIFELINE] as Duplex;
      lifeline.on('error', () => lifeline.destroy());
      createInterface({ input: lifeline }).once('line', (line) => {
        ready((JSON.parse(line) as { descriptions: string[] }).descriptions);
      });
    },
  };
}
