import path from 'node:path';
import { GradusError, messageOf } from '../../core/errors.ts';
import { ensureNativeDecoder } from '../../engine/decoder/native/setup.ts';
import { downloadObjectStore } from '../../infra/setup/released-store.ts';
import { offerBubblewrap } from '../../environments/sandbox/bubblewrap/setup.ts';
import { buildBinaries, requireGo } from '../../infra/setup/go-build.ts';
import { BINARIES, findBinary, SERVERS, TEMPORAL_TOOLS } from '../../infra/setup/server-binaries.ts';
import type { Binary, BinaryName } from '../../infra/setup/server-binaries.ts';
import { downloadTemporalCli, findTemporals, OLDEST_CLI_SERVER } from '../../infra/setup/temporal-server.ts';
import type { TemporalBinary } from '../../infra/setup/temporal-server.ts';
import { ensureTensorFlow, wantsGpu } from '../../infra/setup/tensorflow-native.ts';

/** Told what is done, in sentences. */
type Say = (text: string) => void;

/** The checkout, or the package's compiled half: what holds the native decoder's sources. */
const root = path.resolve(import.meta.dirname, '..', '..');

async function timed<T>(work: () => Promise<T>): Promise<[T, string]> {
  const from = performance.now();
  const result = await work();
  return [result, `${((performance.now() - from) / 1000).toFixed(1)} s`];
}

async function tensorFlow(say: Say): Promise<string[]> {
  const packages = (await wantsGpu()) ? (['tfjs-node', 'tfjs-node-gpu'] as const) : (['tfjs-node'] as const);
  const addons = [];
  for (const name of packages) {
    const [native, seconds] = await timed(() => ensureTensorFlow(name, { say }));
    const how = { cache: 'found', installed: 'found', wheel: 'built from the wheel', installer: 'installed' };
    say(`libtensorflow for ${name}: ${how[native.from]} in ${seconds}`);
    addons.push(native.addon);
  }
  return addons;
}

/** The decoder works without it, so what is missing is said and stops nobody. */
async function nativeDecoder(say: Say): Promise<string[]> {
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

/** What can be the Temporal server without anything being built, if there is something, and why it is taken. */
async function temporalServer(
  found: ReadonlyMap<BinaryName, Binary>,
  say: Say,
): Promise<TemporalBinary | undefined> {
  const [first] = await findTemporals();
  const temporal = first ?? (found.has('temporal-server') ? undefined : await downloadTemporalCli(say));
  if (temporal?.kind === 'cli') {
    say(
      `Temporal server: that of the CLI ${temporal.path}, ${temporal.from === 'override' ? 'as GRADUS_TEMPORAL_SERVER says' : 'since none was built'}`,
    );
  } else if (temporal === undefined) {
    say(
      `Temporal server: to be built, since there is no temporal on PATH with server ${OLDEST_CLI_SERVER} or newer`,
    );
  }
  return temporal;
}

/**
 * What the packages alone do not bring: the servers, libtensorflow, the native decoder and the sandbox, each found or made.
 * A run needs no more. `tools`: Temporal's web interface and its CLI as well, for whoever looks at workflows with them.
 * @returns the files that must stay for it to hold
 * @throws GradusError of the first part that failed, when all have ended; the others have been said
 */
export async function setUp(say: Say, { tools = false }: { tools?: boolean } = {}): Promise<string[]> {
  const wanted = tools ? [...SERVERS, ...TEMPORAL_TOOLS] : SERVERS;
  const found = new Map<BinaryName, Binary>();
  for (const name of wanted) {
    const binary = await findBinary(name);
    if (binary === undefined) continue;
    found.set(name, binary);
    say(`${BINARIES[name].title}: found${binary.from === 'cache' ? '' : ` at ${binary.path}`}`);
  }
  if (!found.has('versitygw')) {
    const downloaded = await downloadObjectStore(say);
    if (downloaded) found.set('versitygw', downloaded);
  }
  // Without an object store nothing comes up, whatever else is downloaded: that is said before anything is spent.
  if (!found.has('versitygw')) {
    const all = wanted.filter((name) => !found.has(name));
    await requireGo(['versitygw']).catch(() => requireGo(all));
  }
  const temporal = await temporalServer(found, say);
  // The CLI's development server is server, commands and web interface in one.
  const needed = temporal?.kind === 'cli' ? (['versitygw'] as const) : wanted;
  const missing = needed.filter((name) => !found.has(name));
  const go = missing.length > 0 ? await requireGo(missing) : '';
  const build = async (): Promise<string[]> =>
    (await buildBinaries(missing, go, say)).map((binary) => binary.path);
  // Downloads wait for the network while Go and the C++ compiler keep the processors busy.
  const parts = await Promise.allSettled([build(), tensorFlow(say), nativeDecoder(say)]);
  const [first, ...others] = parts.flatMap((part) =>
    part.status === 'rejected' ? [part.reason as unknown] : [],
  );
  for (const failure of others) say(messageOf(failure));
  if (first !== undefined) throw first;
  await offerBubblewrap(say);
  const made = parts.flatMap((part) => (part.status === 'fulfilled' ? part.value : []));
  return [...[...found.values()].map((binary) => binary.path), ...(temporal ? [temporal.path] : []), ...made];
}
