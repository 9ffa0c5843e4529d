import path from 'node:path';
import { GradusError } from '../../core/errors.ts';
import { commandLine } from '../../core/installation.ts';
import { cacheEntry, cacheRoot } from '../cache-dir.ts';
import { compareVersions, findOnPath, isExecutable, runCommand } from './command.ts';
import { isAsRecorded } from './recorded-digests.ts';

export type BinaryName = 'temporal-server' | 'temporal-cli' | 'temporal-ui' | 'versitygw' | 'runsc';

interface BinarySource {
  /** What a person calls it. */
  title: string;
  /** A Go main package; its last element names the executable that `go install` leaves. */
  package: string;
  version: string;
  /** The oldest Go that its go.mod accepts. */
  go: string;
  /** Names a file to use instead. */
  override: string;
}

// The newest versions whose go.mod Go 1.26.8 accepts and that `go install` can build; infra/servers/go.mod has those of the
// servers, too. Temporal CLI 1.9 cannot be
// built this way (its go.mod replaces a module); of the CLI only its commands are used here, not its server.
export const BINARIES: Readonly<Record<BinaryName, BinarySource>> = {
  'temporal-server': {
    title: 'Temporal server',
    package: 'go.temporal.io/server/cmd/server',
    version: 'v1.32.1',
    go: '1.26.8',
    override: 'GRADUS_TEMPORAL_SERVER',
  },
  versitygw: {
    title: 'object store (versitygw)',
    package: 'github.com/versity/versitygw/cmd/versitygw',
    version: 'v1.8.0',
    go: '1.25.0',
    override: 'GRADUS_VERSITYGW',
  },
  'temporal-ui': {
    title: 'Temporal UI',
    package: 'github.com/temporalio/ui-server/v2/cmd/server',
    version: 'v2.55.0',
    go: '1.26.5',
    override: 'GRADUS_TEMPORAL_UI',
  },
  'temporal-cli': {
    title: 'Temporal CLI',
    package: 'github.com/temporalio/cli/cmd/temporal',
    version: 'v1.5.1',
    go: '1.25.0',
    override: 'GRADUS_TEMPORAL_CLI',
  },
  // gVisor tags its releases on a branch that Go can build: `go list -m gvisor.dev/gvisor@go` names the newest.
  runsc: {
    title: 'sandbox (gVisor)',
    package: 'gvisor.dev/gvisor/runsc',
    version: 'v0.0.0-20260527191743-a81fd9dd382e',
    go: '1.25.5',
    override: 'GRADUS_RUNSC',
  },
};

/** What a run cannot do without. */
export const SERVERS: readonly BinaryName[] = ['temporal-server', 'versitygw'];
/** What people look at workflows with: nothing waits for it. gVisor is a choice of its own. */
export const TEMPORAL_TOOLS: readonly BinaryName[] = ['temporal-ui', 'temporal-cli'];

export interface Binary {
  path: string;
  from: 'override' | 'path' | 'cache' | 'built' | 'downloaded';
}

/** Where `go install` results are kept. */
export function cachedBinary(name: BinaryName, env: NodeJS.ProcessEnv = process.env): string {
  return path.join(cacheEntry(cacheRoot(env), { name, version: BINARIES[name].version }), name);
}

/** Whether a cached build is there and what was built: hashing a server takes a tenth of a second. */
export const isIntact = async (file: string): Promise<boolean> =>
  (await isExecutable(file)) && (await isAsRecorded(path.dirname(file)));

/** `temporal version 1.5.1 (Server …)` → "1.5.1"; undefined when it is not the Temporal CLI. */
export function parseCliVersion(printed: string): string | undefined {
  return /^temporal version (\d+\.\d+\.\d+)/.exec(printed)?.[1];
}

/** Any CLI from 1.1 speaks to the server; a development build that does not know its version is passed over. */
async function cliOnPath(env: NodeJS.ProcessEnv): Promise<string | undefined> {
  const file = await findOnPath('temporal', env);
  if (file === undefined) return undefined;
  const version = await runCommand(file, ['--version'], { env }).then(
    (result) => parseCliVersion(result.stdout),
    () => undefined, // not runnable: as good as absent, one is built instead
  );
  return version !== undefined && compareVersions(version, '1.1') >= 0 ? file : undefined;
}

/**
 * An existing binary: the file that the environment names, the `temporal` on PATH, or the cached build, unless that has
 * been damaged since.
 * @throws GradusError infra/binary-missing when the environment names a file that cannot be run
 */
export async function findBinary(
  name: BinaryName,
  env: NodeJS.ProcessEnv = process.env,
): Promise<Binary | undefined> {
  const { override, title } = BINARIES[name];
  const chosen = env[override];
  if (chosen) {
    if (await isExecutable(chosen)) return { path: path.resolve(chosen), from: 'override' };
    throw new GradusError(
      'infra',
      'binary-missing',
      `${override} is set to ${chosen}, which is not an executable file. ` +
        `Point it to the ${title}, or unset it to let Gradus build one.`,
    );
  }
  const cached = cachedBinary(name, env);
  if (await isIntact(cached)) return { path: cached, from: 'cache' };
  if (name === 'temporal-cli') {
    const found = await cliOnPath(env);
    if (found !== undefined) return { path: found, from: 'path' };
  }
  return undefined;
}

/**
 * An existing binary, or a clear end.
 * @throws GradusError infra/binary-missing
 */
export async function requireBinary(name: BinaryName, env: NodeJS.ProcessEnv = process.env): Promise<string> {
  const found = await findBinary(name, env);
  if (found !== undefined) return found.path;
  const { title, override, version } = BINARIES[name];
  throw new GradusError(
    'infra',
    'binary-missing',
    `The ${title} ${version} is not there yet, or not whole any more. Run "${commandLine('setup')}", or set ${override} to its file.`,
  );
}
