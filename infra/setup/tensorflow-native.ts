import { existsSync } from 'node:fs';
import { lstat, mkdir, mkdtemp, readlink, rename, rm, symlink } from 'node:fs/promises';
import path from 'node:path';
import { GradusError } from '../../core/errors.ts';
import { cacheEntry, cacheRoot } from '../cache-dir.ts';
import { findOnPath, runCommand, tailOf } from './command.ts';
import { installCudaLibraries } from './cuda-libraries.ts';
import { withLock } from './file-lock.ts';
import { packageFolder } from './package-folder.ts';
import { isAsRecorded, recordDigests } from './recorded-digests.ts';
import { downloadWheel, extract } from './wheel.ts';
import type { PinnedWheel } from './wheel.ts';

export type TensorFlowPackage = 'tfjs-node' | 'tfjs-node-gpu';

const TFJS_VERSION = '4.22.0';
const LIBTENSORFLOW_VERSION = '2.20.0';
/** The newest Node-API that the addon's package knows; Node 20 to 24 all speak it. */
const NAPI_VERSION = 8;
const LIBRARIES = ['libtensorflow_cc.so.2', 'libtensorflow_framework.so.2'];

const SOURCES = ['auto', 'wheel', 'installer'] as const;
export type LibTensorFlowSource = (typeof SOURCES)[number];

/** @throws GradusError infra/bad-setting */
export function parseSource(text: string | undefined): LibTensorFlowSource {
  const found = SOURCES.find((source) => source === (text || 'auto'));
  if (found !== undefined) return found;
  throw new GradusError(
    'infra',
    'bad-setting',
    `GRADUS_LIBTENSORFLOW is "${text}"; it can be ${SOURCES.join(', ')}.`,
  );
}

/** A GPU is wanted when GRADUS_TENSORFLOW_GPU=1, or when it is unset and an NVIDIA driver answers. */
export async function wantsGpu(env: NodeJS.ProcessEnv = process.env): Promise<boolean> {
  const chosen = env['GRADUS_TENSORFLOW_GPU'];
  if (chosen) return chosen === '1';
  const smi = await findOnPath('nvidia-smi', env);
  if (smi === undefined) return false;
  const listed = await runCommand(smi, ['--list-gpus'], { env });
  return listed.code === 0 && listed.stdout.includes('GPU');
}

/** Of the wheels for CPython 3.11 and glibc, as the Python package index has them. */
const WHEEL_SHA256 = {
  'tensorflow-cpu x64': 'cf756bbe2d256e942ab5d0ad2c858fb40017581494febdb4387c149b1afde780',
  'tensorflow x64': '481499fd0f824583de8945be61d5e827898cdaa4f5ea1bc2cc28ca2ccff8229e',
  'tensorflow arm64': '3e9568c8efcb05c0266be223e3269c62ebf7ad3498f156438311735f6fa5ced5',
};

/** The wheel that holds libtensorflow for this package and processor. */
export function wheelFor(name: TensorFlowPackage, arch: NodeJS.Architecture): PinnedWheel {
  const processor = arch === 'arm64' ? 'arm64' : 'x64';
  const project = name === 'tfjs-node' && processor === 'x64' ? 'tensorflow-cpu' : 'tensorflow';
  const sha256 = WHEEL_SHA256[`${project} ${processor}` as keyof typeof WHEEL_SHA256];
  return { project, version: LIBTENSORFLOW_VERSION, sha256: [sha256] };
}

export function tensorFlowCacheEntry(root: string, name: TensorFlowPackage): string {
  const version = `${TFJS_VERSION}-tf${LIBTENSORFLOW_VERSION}`;
  return cacheEntry(root, { name, version, variant: `napi${NAPI_VERSION}` });
}

export interface TensorFlowNative {
  package: TensorFlowPackage;
  /** The addon that the package loads; through a link when it is in the cache. */
  addon: string;
  from: 'cache' | 'wheel' | 'installer' | 'installed';
}

interface Options {
  env?: NodeJS.ProcessEnv;
  say?: (text: string) => void;
}

/**
 * Makes `@tensorflow/<name>` loadable: its npm package comes without its native half. That half is either what the
 * package's own installer downloads (libtensorflow 2.9, from a host that is no package registry), or libtensorflow
 * out of TensorFlow's Python wheel with the package's addon compiled against it; the second is newer and faster.
 * @throws GradusError infra/tensorflow-missing, infra/download-failed, infra/build-failed, infra/bad-setting
 */
export async function ensureTensorFlow(
  name: TensorFlowPackage,
  options: Options = {},
): Promise<TensorFlowNative> {
  const env = options.env ?? process.env;
  const source = parseSource(env['GRADUS_LIBTENSORFLOW']);
  const folder = packageFolder(`@tensorflow/${name}`);
  const link = path.join(folder, 'lib', `napi-v${NAPI_VERSION}`, 'tfjs_binding.node');
  const entry = tensorFlowCacheEntry(cacheRoot(env), name);
  const addon = path.join(entry, 'tensorflow', 'tfjs_binding.node');
  const done = (from: TensorFlowNative['from']) => ({ package: name, addon: link, from });

  if (source !== 'wheel' && (await isOwnInstall(link))) return done('installed');
  if (source !== 'installer') {
    const intact = async (): Promise<boolean> => existsSync(addon) && (await isAsRecorded(entry));
    if (await intact()) {
      await linkAddon(link, addon);
      return done('cache');
    }
    const tools = await wheelTools(env);
    if (tools !== undefined) {
      const lock = `${entry}.lock`;
      const say = options.say ?? (() => undefined);
      const waiting = (pid: number) => say(`libtensorflow: waiting for process ${pid}, which prepares it …`);
      await withLock(lock, waiting, async () => {
        if (await intact()) return;
        say(
          name === 'tfjs-node'
            ? `libtensorflow: downloading 260 MB, compiling the addon (750 MB on disk) …`
            : `libtensorflow for GPUs: downloading 3 GB with CUDA, compiling the addon (5 GB on disk; ` +
                `GRADUS_TENSORFLOW_GPU=0 does without) …`,
        );
        await buildFromWheel(name, entry, tools);
      });
      await linkAddon(link, addon);
      return done('wheel');
    }
    if (source === 'wheel') {
      throw new GradusError(
        'infra',
        'tensorflow-missing',
        `GRADUS_LIBTENSORFLOW=wheel needs ${WHEEL_NEEDS}.`,
      );
    }
  }
  await runInstaller(name, folder, env);
  if (await isOwnInstall(link)) return done('installer');
  throw new GradusError('infra', 'tensorflow-missing', noTensorFlow('its installer left no addon'));
}

const WHEEL_NEEDS = 'Linux, Python 3 with pip, and a C++ compiler (g++ or clang++) on PATH';

function noTensorFlow(reason: string): string {
  return (
    `libtensorflow could not be installed by the package's own installer (${reason}). Where only package ` +
    `registries are reachable, it is taken from a Python wheel: that needs ${WHEEL_NEEDS}. Then run the command again.`
  );
}

/** True for an addon that is a file of its own, not our link. */
async function isOwnInstall(link: string): Promise<boolean> {
  return lstat(link).then(
    (stats) => stats.isFile(),
    () => false,
  );
}

async function linkAddon(link: string, target: string): Promise<void> {
  const current = await readlink(link).catch(() => undefined); // absent, or a file that is to be replaced
  if (current === target) return;
  await mkdir(path.dirname(link), { recursive: true });
  const fresh = `${link}.${process.pid}`;
  await rm(fresh, { force: true });
  await symlink(target, fresh);
  await rename(fresh, link);
}

interface WheelTools {
  python: string;
  compiler: string;
}

async function wheelTools(env: NodeJS.ProcessEnv): Promise<WheelTools | undefined> {
  if (process.platform !== 'linux') return undefined;
  const python = await findOnPath('python3', env);
  const compiler = (await findOnPath('g++', env)) ?? (await findOnPath('clang++', env));
  if (python === undefined || compiler === undefined) return undefined;
  const pip = await runCommand(python, ['-m', 'pip', '--version'], { env });
  return pip.code === 0 ? { python, compiler } : undefined;
}

/** Where an entry of the wheel goes: libraries to stay, headers for the time of the compilation. */
export function wheelTarget(entry: string, libraries: string, headers: string): string | undefined {
  const inside = entry.replace(/^tensorflow\//, '');
  if (LIBRARIES.includes(inside)) return path.join(libraries, inside);
  const header = /^include\/(.*\/(?:c|platform)\/.*\.h)$/.exec(inside)?.[1];
  return header === undefined ? undefined : path.join(headers, header);
}

async function buildFromWheel(name: TensorFlowPackage, entry: string, tools: WheelTools): Promise<void> {
  await mkdir(path.dirname(entry), { recursive: true });
  await rm(`${entry}.partial`, { recursive: true, force: true }); // what a killed build left
  const partial = `${entry}.partial`;
  const scratch = await mkdtemp(`${partial}-`);
  try {
    const wheel = await downloadWheel(tools.python, wheelFor(name, process.arch), scratch);
    // The same two levels as in the wheel: libtensorflow looks for CUDA in ../nvidia.
    const libraries = path.join(partial, 'tensorflow');
    const headers = path.join(scratch, 'include');
    await extract(wheel, (file) => wheelTarget(file, libraries, headers));
    if (name === 'tfjs-node-gpu') await installCudaLibraries(tools.python, partial, scratch);
    await rm(wheel);
    await compileAddon(name, tools.compiler, libraries, headers);
    await recordDigests(partial);
    await rm(entry, { recursive: true, force: true }); // what was damaged
    await rename(partial, entry);
  } finally {
    await rm(scratch, { recursive: true, force: true });
    await rm(partial, { recursive: true, force: true });
  }
}

/** The arguments of the one compiler call; `$ORIGIN` makes the addon find the libraries beside it. */
export function compilerArguments(options: {
  sources: string;
  nodeHeaders: string;
  headers: string;
  libraries: string;
  output: string;
}): string[] {
  const { headers } = options;
  const include = [
    options.nodeHeaders,
    headers,
    path.join(headers, 'external', 'local_tsl'),
    path.join(headers, 'external', 'local_xla'),
    path.dirname(options.sources),
  ];
  return ['-O2', '-std=c++17', '-fPIC', '-shared', '-w', `-DNAPI_VERSION=${NAPI_VERSION}`].concat(
    include.map((folder) => `-I${folder}`),
    ['tfjs_backend.cc', 'tfjs_binding.cc'].map((file) => path.join(options.sources, file)),
    LIBRARIES.map((file) => path.join(options.libraries, file)),
    ['-o', options.output, '-Wl,-rpath,$ORIGIN'],
  );
}

async function compileAddon(
  name: TensorFlowPackage,
  compiler: string,
  libraries: string,
  headers: string,
): Promise<void> {
  const output = path.join(libraries, 'tfjs_binding.node');
  const args = compilerArguments({
    sources: path.join(packageFolder(`@tensorflow/${name}`), 'binding'),
    nodeHeaders: path.join(packageFolder('node-api-headers'), 'include'),
    headers,
    libraries,
    output,
  });
  const compiled = await runCommand(compiler, args);
  if (compiled.code !== 0) {
    throw new GradusError(
      'infra',
      'build-failed',
      `The TensorFlow addon did not compile with ${compiler}:\n${tailOf(compiled.stderr)}\n` +
        `A compiler for C++17 is needed (g++ 9 or newer).`,
    );
  }
  // In a process of its own: a library that does not fit this machine must not take the set-up with it.
  const load = `process.dlopen({ exports: {} }, ${JSON.stringify(output)})`;
  const loaded = await runCommand(process.execPath, ['-e', load]);
  if (loaded.code !== 0) {
    throw new GradusError(
      'infra',
      'build-failed',
      `The TensorFlow addon was built but cannot be loaded here:\n${tailOf(loaded.stderr)}`,
    );
  }
}

/** The line of a stack trace that says something. */
function reasonIn(printed: string): string {
  return /^\s*(?:\w*Error: )(.*)$/m.exec(printed)?.[1] ?? tailOf(printed, 3);
}

async function runInstaller(name: TensorFlowPackage, folder: string, env: NodeJS.ProcessEnv): Promise<void> {
  const script = path.join(folder, 'scripts', 'install.js');
  const tools = path.resolve(folder, '..', '..', '.bin');
  const result = await runCommand(process.execPath, [script, name === 'tfjs-node-gpu' ? 'gpu' : 'cpu'], {
    cwd: folder,
    env: { ...env, PATH: `${tools}${path.delimiter}${env['PATH'] ?? ''}` },
  });
  if (result.code !== 0) {
    throw new GradusError('infra', 'tensorflow-missing', noTensorFlow(reasonIn(result.stderr)), {
      retryable: true,
    });
  }
}
