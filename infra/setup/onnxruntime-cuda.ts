import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, rename, rm, symlink } from 'node:fs/promises';
import { createRequire } from 'node:module';
import path from 'node:path';
import { GradusError } from '../../core/errors.ts';
import { cacheEntry, cacheRoot } from '../cache-dir.ts';
import { findOnPath } from './command.ts';
import { withLock } from './file-lock.ts';
import { isAsRecorded, recordDigests } from './recorded-digests.ts';
import { takeFromWheels } from './wheel.ts';
import type { PinnedWheel } from './wheel.ts';

/** The version of onnxruntime-node: a provider runs in the library that it was built with. */
const VERSION = '1.30.0';
const PROVIDERS = ['libonnxruntime_providers_shared.so', 'libonnxruntime_providers_cuda.so'];
/**
 * `onnxruntime-gpu`, what its extras `cuda` and `cudnn` ask for, and what these ask for, as pip resolves it. For x64: there
 * is no wheel of the first for arm64.
 */
export const WHEELS: readonly PinnedWheel[] = [
  {
    project: 'onnxruntime-gpu',
    version: VERSION,
    sha256: ['4fbf0c5d7b5fb99266c2e8a802e3e64af68bdc383e0f3c7349b985f1087eedaa'],
  },
  {
    project: 'nvidia-cublas',
    version: '13.10.0.20',
    sha256: ['dcc6d63884c53d07e267ce7e6feac17b2538cebaafec5db865736c3e28e4dc84'],
  },
  {
    project: 'nvidia-cuda-nvrtc',
    version: '13.5.37',
    sha256: ['86b4d68058807988b7d9af5b44917a0601e9c337f35ccd657bfb3c759ff8d8bc'],
  },
  {
    project: 'nvidia-cuda-runtime',
    version: '13.5.37',
    sha256: ['df2b79a8852f10d1fef8c848489c49eebb5754051bf870202a862831412b179d'],
  },
  {
    project: 'nvidia-cudnn-cu13',
    version: '9.28.0.42',
    sha256: ['7358353c75bb121a58e5f7712fe6d588883dc1df8ba00f428237e44e97543c4d'],
  },
  {
    project: 'nvidia-cufft',
    version: '12.5.0.14',
    sha256: ['b8be26837a5abad2b5b74f3e92dd29f622a42934b355be0961a48712cbba23ad'],
  },
  {
    project: 'nvidia-curand',
    version: '10.4.5.25',
    sha256: ['22bb226a857e5888fe6b54ae465fc4371296bcff13a35f79e19691bcf454f529'],
  },
  {
    project: 'nvidia-nvjitlink',
    version: '13.5.37',
    sha256: ['280d7cb9649704145f074b8dbde500de04ce02d0872e066e20a83c17bcaa93eb'],
  },
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
    if (await isAsRecorded(entry)) return;
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
    await takeFromWheels(python, WHEELS, partial, (file) => targetOf(file, partial));
    await recordDigests(partial);
    await rm(entry, { recursive: true, force: true }); // what was damaged
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
