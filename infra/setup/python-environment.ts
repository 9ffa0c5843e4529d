import { existsSync } from 'node:fs';
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { GradusError } from '../../core/errors.ts';
import {
  environmentIn,
  findPythonEnvironment,
  pythonEnvironmentFolder,
  readyMark,
} from '../python-environment.ts';
import type { PythonEnvironment } from '../python-environment.ts';
import { findOnPath, runCommand, tailOf } from './command.ts';
import { withLock } from './file-lock.ts';
import { packagesIn, pipProgress } from './pip-progress.ts';

/** Without a word for longer nobody believes that something goes on, milliseconds. */
const STILL_MS = 10_000;

/**
 * A virtual environment with the packages of a pinned requirements file, made in the cache when it is not there. Where one
 * has a SHA-256, pip wants it of all; a file with the line `# gradus: --no-deps` names all that is installed. A second
 * process that wants the same environment waits for the first; one that was cut off is made anew.
 * Throws GradusError('infra', 'python-missing'), and GradusError('infra', 'python-packages') with pip's last words.
 */
export async function ensurePythonEnvironment(
  name: string,
  requirementsFile: string,
  say: (text: string) => void,
): Promise<PythonEnvironment> {
  const found = await findPythonEnvironment(name, requirementsFile);
  if (found) return found;
  const folder = await pythonEnvironmentFolder(name, requirementsFile);
  await mkdir(path.dirname(folder), { recursive: true });
  const waiting = (pid: number): void => say(`waiting for process ${pid}, which is making ${folder}`);
  return withLock(`${folder}.lock`, waiting, async () => {
    if (!existsSync(readyMark(folder))) await make(name, requirementsFile, folder, say);
    return environmentIn(folder);
  });
}

async function make(
  name: string,
  requirementsFile: string,
  folder: string,
  say: (text: string) => void,
): Promise<void> {
  const started = Date.now();
  const python = await findOnPath('python3');
  if (python === undefined) {
    throw new GradusError(
      'infra',
      'python-missing',
      `${name} needs Python 3.10 or newer, and there is no python3 on PATH: install it, then run the command again`,
    );
  }
  say(`making a Python environment for ${name} in ${folder} …`);
  // Whatever an attempt that was cut off left is not trusted.
  await rm(folder, { recursive: true, force: true });
  const requirements = await readFile(requirementsFile, 'utf8');
  const whole = /^# gradus: --no-deps$/mu.test(requirements) ? ['--no-deps'] : [];
  await run(python, ['-m', 'venv', folder], 'Is the venv module of Python installed (python3-venv)?');
  const progress = pipProgress(packagesIn(requirements));
  let doing = 'pip has been started';
  const still = setInterval(() => {
    say(`${name}: still at it after ${((Date.now() - started) / 1000).toFixed(0)} s (${doing})`);
  }, STILL_MS);
  const options = ['--progress-bar', 'off', '--disable-pip-version-check', ...whole];
  try {
    await run(
      environmentIn(folder).python,
      ['-m', 'pip', 'install', ...options, '-r', requirementsFile],
      'Is the Python package index reachable, and the disk not full?',
      (line) => {
        const text = progress(line);
        if (text === null) return;
        doing = text;
        say(`${name}: ${text}`);
      },
    );
  } finally {
    clearInterval(still);
  }
  await writeFile(readyMark(folder), '');
  say(`Python environment for ${name} made in ${((Date.now() - started) / 1000).toFixed(1)} s`);
}

async function run(
  command: string,
  args: readonly string[],
  hint: string,
  onLine: (line: string) => void = () => undefined,
): Promise<void> {
  const { code, stdout, stderr } = await runCommand(command, args, { onLine });
  if (code === 0) return;
  throw new GradusError(
    'infra',
    'python-packages',
    `${command} ${args.join(' ')} failed:\n${tailOf(stderr || stdout)}\n${hint} Then run the command again.`,
    { retryable: true },
  );
}
