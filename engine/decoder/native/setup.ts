import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, readlink, rename, rm, symlink } from 'node:fs/promises';
import path from 'node:path';
import { GradusError } from '../../../core/errors.ts';
import { commandLine } from '../../../core/installation.ts';
import { sourcesDigest } from './sources.ts';
import { cacheEntry, cacheRoot } from '../../../infra/cache-dir.ts';
import { findOnPath, runCommand, tailOf } from '../../../infra/setup/command.ts';
import { withLock } from '../../../infra/setup/file-lock.ts';
import { packageFolder } from '../../../infra/setup/package-folder.ts';
import { isAsRecorded, recordDigests } from '../../../infra/setup/recorded-digests.ts';

/** Has onnxruntime's C header in it; an older header works with a newer library. */
const HEADERS = 'github.com/yalue/onnxruntime_go@v1.27.0';
const NAPI_VERSION = 8;
const FLAGS = ['-O3', '-std=c++17', '-fPIC', '-shared', '-Wall', '-Wextra', `-DNAPI_VERSION=${NAPI_VERSION}`];
/** The sampler's arithmetic is that of TypeScript: a * b + c is rounded twice, and nobody looks at exceptions. */
const EXACT = ['-ffp-contract=off', '-fno-trapping-math'];

const sourcesOf = (root: string): string => path.join(root, 'engine', 'decoder', 'native');

/**
 * Builds the native decoder in the cache when it is not there, and links it to where `engine/decoder/native/addon.ts`
 * looks for it. The decoder works without it, several times slower.
 * Throws GradusError('infra', 'build-failed') that says what is missing.
 */
export async function ensureNativeDecoder(
  root: string,
  env: NodeJS.ProcessEnv = process.env,
): Promise<{ addon: string; from: 'cache' | 'built' }> {
  const entry = cacheEntry(cacheRoot(env), {
    name: 'decoder',
    version: versionOf(sourcesOf(root)),
    variant: `napi${NAPI_VERSION}`,
  });
  const addon = path.join(entry, 'decoder.node');
  const intact = async (): Promise<boolean> => existsSync(addon) && (await isAsRecorded(entry));
  const there = await intact();
  if (!there) {
    await mkdir(path.dirname(entry), { recursive: true });
    await withLock(
      `${entry}.lock`,
      () => undefined,
      async () => {
        if (await intact()) return;
        const partial = await mkdtemp(`${entry}.partial-`);
        try {
          await compileDecoder(root, path.join(partial, 'decoder.node'), [], env);
          await recordDigests(partial);
          await rm(entry, { recursive: true, force: true }); // what was damaged
          await rename(partial, entry);
        } finally {
          await rm(partial, { recursive: true, force: true });
        }
      },
    );
  }
  await link(path.join(sourcesOf(root), 'decoder.node'), addon);
  return { addon, from: there ? 'cache' : 'built' };
}

/** Compiles the addon and sees that it can be loaded, unless `extra` flags ask for what needs a special process. */
export async function compileDecoder(
  root: string,
  output: string,
  extra: readonly string[] = [],
  env: NodeJS.ProcessEnv = process.env,
): Promise<void> {
  const compiler = (await findOnPath('g++', env)) ?? (await findOnPath('clang++', env));
  if (process.platform === 'win32' || compiler === undefined) throw failed('it needs g++ or clang++ on PATH');
  const sources = sourcesOf(root);
  const files = (await readdir(sources)).filter((name) => name.endsWith('.cc')).toSorted();
  const include = [await headers(env), path.join(packageFolder('node-api-headers'), 'include')];
  const compiled = await runCommand(compiler, [
    ...FLAGS,
    ...EXACT,
    `-DGRADUS_SOURCES="${sourcesDigest(sources)}"`,
    ...extra,
    ...include.map((folder) => `-I${folder}`),
    ...files.map((file) => path.join(sources, file)),
    ...(process.platform === 'darwin' ? ['-undefined', 'dynamic_lookup'] : ['-ldl']),
    '-o',
    output,
  ]);
  if (compiled.code !== 0) throw failed(`${compiler} said:\n${tailOf(compiled.stderr)}`);
  if (extra.length > 0) return;
  // In a process of its own: an addon that does not fit this machine must not take the set-up with it.
  const load = `process.dlopen({ exports: {} }, ${JSON.stringify(output)})`;
  const loaded = await runCommand(process.execPath, ['-e', load]);
  if (loaded.code !== 0) throw failed(`it cannot be loaded here:\n${tailOf(loaded.stderr)}`);
}

/** The folder of `onnxruntime_c_api.h`, in Go's own module cache: verified by its checksum database. */
async function headers(env: NodeJS.ProcessEnv): Promise<string> {
  const go = await findOnPath('go', env);
  if (go === undefined) throw failed('it needs Go on PATH, to fetch the headers of onnxruntime');
  const { code, stdout, stderr } = await runCommand(go, ['mod', 'download', '-json', HEADERS], {
    // Anywhere but in a Go module.
    cwd: path.parse(process.cwd()).root,
    env: { ...env, GOFLAGS: '-mod=mod' },
  });
  const folder = code === 0 ? (JSON.parse(stdout) as { Dir?: string }).Dir : undefined;
  if (folder === undefined) {
    throw failed(`Go could not download ${HEADERS}:\n${tailOf(stderr || stdout)}`);
  }
  return folder;
}

const versionOf = (sources: string): string =>
  createHash('sha256')
    .update([...FLAGS, ...EXACT, HEADERS, sourcesDigest(sources)].join(' '))
    .digest('hex')
    .slice(0, 12);

async function link(name: string, target: string): Promise<void> {
  const current = await readlink(name).catch(() => undefined); // absent, or a file that is to be replaced
  if (current === target) return;
  const fresh = `${name}.${process.pid}`;
  await rm(fresh, { force: true });
  await symlink(target, fresh);
  await rename(fresh, name);
}

const failed = (why: string): GradusError =>
  new GradusError(
    'infra',
    'build-failed',
    `the native decoder could not be built: ${why}. The stock decoder serves instead, several times slower; ` +
      `\`${commandLine('setup')}\` tries again.`,
  );
