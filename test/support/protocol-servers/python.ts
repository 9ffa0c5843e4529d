import path from 'node:path';
import { findPythonEnvironment, nameOfRequirements } from '../../../infra/python-environment.ts';
import { ensurePythonEnvironment } from '../../../infra/setup/python-environment.ts';

const REQUIREMENTS = path.join(import.meta.dirname, 'requirements.txt');
const NEMO_GYM = path.join(import.meta.dirname, 'nemo-gym', 'requirements.txt');

/** The Python with the servers of OpenEnv and of the Open Reward Standard, made where it is not there: 100 MB on disk. */
export async function protocolPython(): Promise<string> {
  const say = (text: string): boolean => process.stderr.write(`setup: ${text}\n`);
  return (await ensurePythonEnvironment(nameOfRequirements(REQUIREMENTS), REQUIREMENTS, say)).python;
}

/** The Python with NeMo Gym; undefined, and said so, where nobody has made it: it is too large for every test run. */
export async function nemoGymPython(): Promise<string | undefined> {
  const found = await findPythonEnvironment(nameOfRequirements(NEMO_GYM), NEMO_GYM);
  if (found) return found.python;
  console.warn(
    `NOT TESTED: NeMo Gym's own server. With Python 3.12 or 3.13: npm run setup:python -- ${path.relative(process.cwd(), NEMO_GYM)}`,
  );
  return undefined;
}
