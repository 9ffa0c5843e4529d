import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, rename, rm, symlink } from 'node:fs/promises';
import { createRequire } from 'node:module';
import path from 'node:path';
import { GradusError } from '../../core/errors.ts';
import { cacheEntry, cacheRoot } from './cache-dir.ts';
import { findOnPath } from './command.ts';
import { withLock } from './file-lock.ts';
import { downloadWheel, extract } from './wheel.ts';

/** The version of onnxruntime-node: a provider runs in the library that it was built with. */
const VERSION = '1.30.0';
const PROVIDERS = ['libonnxruntime_providers_shared.so', 'libonnxruntime_providers_cuda.so'];
/** What `onnxruntime-gpu[cuda,cudnn]` of that version asks for, and what these ask for. */
const CUDA = [
  'nvidia-cuda-runtime==13.5.37',
  'nvidia-cuda-nvrtc==13.5.37',
  'nvidia-nvjitlink==13.5.37',
  'nvidia-cublas==13.10.0.20',
  'nvidia-cufft==12.5.0.14',
  'nvidia-curand==10.4.5.25',
  'nvidia-cudnn-cu13==9.28.0.42',
];

/**
 * Makes onnxruntime-node's CUDA provider loadable: its npm package comes without it, and its own installer takes it from
 * a host that is no package registry. Here it comes out of the wheel `onnxruntime-gpu`, of the same version, with the
 * CUDA libraries that it was built for (a driver for CUDA 13 is needed).
 * @returns the folders that LD_LIBRARY_PATH must name for the provider to find them
 * @throws GradusError infra/python-missing, infra/download-failed
 */
export async function ensureOnnxCuda(say: (text: string) => void): Promise<string[]> {
  const entry = cacheEntry(cacheRoot(), { name: 'onnxruntime-cuda', version: VERSION });
  await mkdir(path.dirname(entry), { recursive: true });
  const waiting = (pid: number): void => say(`onnxruntime for GPUs: waiting for process ${pid} …`);
  await withLock(`${entry}.lock`, waiting, async () => {
    if (existsSync(entry)) return;
    say('onnxruntime for GPUs: downloading 1.5 GB with CUDA (3 GB on disk) …');
    await download(entry);
  });
  const require = createRequire(import.meta.url);
  const packageFolder = path.dirname(require.resolve('onnxruntime-node/package.json'));
  const beside = path.join(packageFolder, 'bin', 'napi-v6', process.platform, process.arch);
  for (const name of PROVIDERS) {
    // The package's own installer may have put them there.
    if (!existsSync(path.join(beside, name))) await symlink(path.join(entry, name), path.join(beside, name));
  }
  return (await readdir(path.join(entry, 'nvidia'))).map((name) => path.join(entry, 'nvidia', name, 'lib'));
}

async function download(entry: string): Promise<void> {
  const python = await findOnPath('python3');
  if (python === undefined) {
    throw new GradusError(
      'infra',
      'python-missing',
      'Python 3 with pip is needed to download onnxruntime for GPUs: install it, then run the command again',
    );
  }
  const partial = await mkdtemp(`${entry}.partial-`);
  try {
    for (const requirement of [`onnxruntime-gpu==${VERSION}`, ...CUDA]) {
      const folder = await mkdtemp(path.join(partial, 'wheel-'));
      const wheel = await downloadWheel(python, requirement, folder);
      await extract(wheel, (file) => targetOf(file, partial));
      await rm(folder, { recursive: true }); // one at a time: together they are gigabytes
    }
    await rename(partial, entry);
  } finally {
    await rm(partial, { recursive: true, force: true });
  }
}

/** Where a file of a wheel goes: the providers to the top, CUDA's libraries as they lie; undefined for the rest. */
export function targetOf(file: string, folder: string): string | undefined {
  if (PROVIDERS.includes(path.basename(file))) return path.join(folder, path.basename(file));
  return /^nvidia\/[^/]+\/lib\/[^/]+\.so[.\d]*$/.test(file) ? path.join(folder, file) : undefined;
}
