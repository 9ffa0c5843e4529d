/**
 * The second part of the set-up, run by bootstrap.mjs once the packages are there: the servers, libtensorflow, the native
 * decoder and the sandbox, each found or made. `--stamp FILE --key KEY` records that all is well, so that the next start skips this.
 */
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { GradusError, messageOf } from '../../core/errors.ts';
import { ensureNativeDecoder } from './decoder-native.ts';
import { offerBubblewrap } from './sandbox.ts';
import { BINARIES, BINARY_NAMES, buildBinary, findBinary, requireGo } from './server-binaries.ts';
import type { Binary, BinaryName } from './server-binaries.ts';
import { ensureTensorFlow, wantsGpu } from './tensorflow-native.ts';

const root = path.resolve(import.meta.dirname, '..', '..');

function say(text: string): void {
  process.stderr.write(`setup: ${text}\n`);
}

async function timed<T>(work: () => Promise<T>): Promise<[T, string]> {
  const from = performance.now();
  const result = await work();
  return [result, `${((performance.now() - from) / 1000).toFixed(1)} s`];
}

/** One after the other: together the builds would need more memory than a laptop spares. */
async function buildAll(missing: readonly BinaryName[], go: string): Promise<string[]> {
  const paths = [];
  for (const name of missing) {
    const { title, version } = BINARIES[name];
    say(`${title} ${version}: building with Go (minutes, once) …`);
    const [binary, seconds] = await timed(() => buildBinary(name, go, say));
    say(`${title} ${version}: ${binary.from === 'built' ? 'built' : 'found'} in ${seconds}`);
    paths.push(binary.path);
  }
  return paths;
}

async function tensorFlow(): Promise<string[]> {
  const packages = (await wantsGpu()) ? (['tfjs-node', 'tfjs-node-gpu'] as const) : (['tfjs-node'] as const);
  const addons = [];
  for (const name of packages) {
    const [native, seconds] = await timed(() => ensureTensorFlow(name, { root, say }));
    const how = { cache: 'found', installed: 'found', wheel: 'built from the wheel', installer: 'installed' };
    say(`libtensorflow for ${name}: ${how[native.from]} in ${seconds}`);
    addons.push(native.addon);
  }
  return addons;
}

/** The decoder works without it, so what is missing is said and stops nobody. */
async function nativeDecoder(): Promise<string[]> {
  try {
    const [native, seconds] = await timed(() => ensureNativeDecoder(root));
    say(`native decoder: ${native.from === 'cache' ? 'found' : 'built'} in ${seconds}`);
    return [native.addon];
  } catch (error) {
    if (!(error instanceof GradusError)) throw error;
    say(error.message);
    return [];
  }
}

async function main(): Promise<void> {
  const { values } = parseArgs({ options: { stamp: { type: 'string' }, key: { type: 'string' } } });
  const found = new Map<BinaryName, Binary>();
  for (const name of BINARY_NAMES) {
    const binary = await findBinary(name);
    if (binary === undefined) continue;
    found.set(name, binary);
    say(`${BINARIES[name].title}: found${binary.from === 'cache' ? '' : ` at ${binary.path}`}`);
  }
  const missing = BINARY_NAMES.filter((name) => !found.has(name));
  const go = missing.length > 0 ? await requireGo(missing) : '';
  // The download waits for the network while Go keeps the processors busy.
  const parts = await Promise.allSettled([buildAll(missing, go), tensorFlow(), nativeDecoder()]);
  const failures = parts.filter((part) => part.status === 'rejected');
  for (const failure of failures) say(messageOf(failure.reason));
  if (failures.length > 0) {
    process.exitCode = 1;
    return;
  }
  await offerBubblewrap(say);
  const made = parts.flatMap((part) => (part.status === 'fulfilled' ? part.value : []));
  const paths = [...[...found.values()].map((binary) => binary.path), ...made];
  if (values.stamp !== undefined && values.key !== undefined) {
    await writeFile(values.stamp, JSON.stringify({ key: values.key, paths }));
  }
}

main().catch((error: unknown) => {
  say(messageOf(error));
  process.exitCode = 1;
});
