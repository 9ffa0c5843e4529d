import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { cacheEntry, cacheRoot } from './cache-dir.ts';

export interface PythonEnvironment {
  /** The interpreter, with the packages. */
  python: string;
  folder: string;
}

/** Where the environment of a requirements file is, or will be: other requirements, another folder. */
export async function pythonEnvironmentFolder(name: string, requirementsFile: string): Promise<string> {
  const requirements = await readFile(requirementsFile);
  const version = createHash('sha256').update(requirements).digest('hex').slice(0, 12);
  return cacheEntry(cacheRoot(), { name, version });
}

/** The environment if it is there whole, undefined if it has to be made. */
export async function findPythonEnvironment(
  name: string,
  requirementsFile: string,
): Promise<PythonEnvironment | undefined> {
  const folder = await pythonEnvironmentFolder(name, requirementsFile);
  return existsSync(readyMark(folder)) ? environmentIn(folder) : undefined;
}

/** The file that is written when it is whole. */
export const readyMark = (folder: string): string => path.join(folder, '.ready');

export const environmentIn = (folder: string): PythonEnvironment => ({
  folder,
  python: path.join(folder, 'bin', 'python'),
});

/** What the environment of a requirements file is called: after the folder that the file lies in. */
export const nameOfRequirements = (file: string): string => `python-${path.basename(path.dirname(file))}`;
