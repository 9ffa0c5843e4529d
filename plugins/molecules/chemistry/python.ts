import path from 'node:path';
import { findPythonEnvironment } from '../../../infra/python-environment.ts';
import { ensurePythonEnvironment } from '../../../infra/setup/python-environment.ts';

const NAME = 'chemistry';
const REQUIREMENTS = path.resolve(import.meta.dirname, 'requirements.txt');

/**
 * The Python that has the chemistry worker's packages, made if it is not there: some 200 MB of wheels, 700 MB on disk,
 * half a minute where the network is fast. Throws what `ensurePythonEnvironment` throws.
 */
export async function ensureChemistry(say: (text: string) => void): Promise<string> {
  return (await ensurePythonEnvironment(NAME, REQUIREMENTS, say)).python;
}

/** The same, undefined where `npm run setup:chemistry` has not run. */
export async function findChemistry(): Promise<string | undefined> {
  return (await findPythonEnvironment(NAME, REQUIREMENTS))?.python;
}
