/**
 * `npm run setup:python -- NAME …`: the Python packages of environments, found or made in the cache folder. NAME is a
 * folder of environments/connectors/packages that has a requirements.txt, or the path of a requirements file. Without one: what there is.
 */
import { existsSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { GradusError, messageOf } from '../../core/errors.ts';
import { commandLine } from '../../core/installation.ts';
import { findPythonEnvironment, nameOfRequirements } from '../../infra/python-environment.ts';
import { ensurePythonEnvironment } from '../../infra/setup/python-environment.ts';

const ENVIRONMENTS = path.resolve(import.meta.dirname, '../../environments/connectors/packages');
const requirementsOf = (name: string): string => path.join(ENVIRONMENTS, name, 'requirements.txt');
const say = (text: string) => process.stderr.write(`setup: ${text}\n`);

try {
  const names = process.argv.slice(2);
  for (const name of names) await setUp(name);
  if (names.length === 0) await list();
} catch (error) {
  say(messageOf(error));
  process.exitCode = 1;
}

async function setUp(name: string): Promise<void> {
  const file = [requirementsOf(name), path.resolve(name)].find((candidate) => existsSync(candidate));
  if (file === undefined) {
    throw new GradusError(
      'infra',
      'python-requirements',
      `${name} is no requirements file, and none of ${withPython().join(', ')}`,
    );
  }
  const { python } = await ensurePythonEnvironment(nameOfRequirements(file), file, say);
  say(`${name}: ${python}`);
}

async function list(): Promise<void> {
  for (const name of withPython()) {
    const file = requirementsOf(name);
    const found = await findPythonEnvironment(nameOfRequirements(file), file);
    say(`${name}: ${found ? found.python : `not set up; ${commandLine(`setup python ${name}`)}`}`);
  }
}

function withPython(): string[] {
  return readdirSync(ENVIRONMENTS).filter((name) => existsSync(requirementsOf(name)));
}
