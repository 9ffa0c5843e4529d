import { fileURLToPath } from 'node:url';
import path from 'node:path';
import { GradusError } from '../../../core/errors.ts';
import { commandLine } from '../../../core/installation.ts';
import { findPythonEnvironment, nameOfRequirements } from '../../../infra/python-environment.ts';

/** Which Python has a module: the one that is named, the virtual environment of a requirements file, or `python3`. */
export interface Interpreter {
  /** Its executable. */
  python?: string;
  /** A pinned requirements file, whose virtual environment `npm run setup:python FILE` makes. */
  requirements?: string | URL;
}

/** Throws GradusError('environment', 'python-packages') that names the command by which it is set up. */
export async function findInterpreter({ python, requirements }: Interpreter): Promise<string> {
  if (python !== undefined) return python;
  if (requirements === undefined) return 'python3';
  const file = fileOf(requirements);
  const found = await findPythonEnvironment(nameOfRequirements(file), file);
  if (found) return found.python;
  throw new GradusError(
    'environment',
    'python-packages',
    `The Python packages of ${file} are not set up: ${setUpCommand(requirements)}`,
  );
}

/** The command that makes the virtual environment of a requirements file. */
export function setUpCommand(requirements: string | URL): string {
  const file = fileOf(requirements);
  const ours = path.relative(path.resolve(import.meta.dirname, '../packages'), file);
  return commandLine(`setup python ${/^([\w-]+)[/\\]requirements\.txt$/u.exec(ours)?.[1] ?? file}`);
}

const fileOf = (requirements: string | URL): string =>
  typeof requirements === 'string' ? path.resolve(requirements) : fileURLToPath(requirements);
