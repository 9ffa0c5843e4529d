import path from 'node:path';
import { findPythonEnvironment } from '../../infra/python-environment.ts';
import { ensurePythonEnvironment } from '../../infra/setup/python-environment.ts';

const NAME = 'torch';
const REQUIREMENTS = path.resolve(import.meta.dirname, '../../workers/torch/requirements.txt');

/** The Python that has the PyTorch learner's packages, made if it is not there. Throws what `ensurePythonEnvironment` throws. */
export async function ensureTorch(say: (text: string) => void): Promise<string> {
  return (await ensurePythonEnvironment(NAME, REQUIREMENTS, say)).python;
}

/** The same, undefined where `npm run setup:torch` has not run. */
export async function findTorch(): Promise<string | undefined> {
  return (await findPythonEnvironment(NAME, REQUIREMENTS))?.python;
}
