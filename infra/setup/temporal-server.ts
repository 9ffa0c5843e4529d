import { existsSync } from 'node:fs';
import path from 'node:path';
import { GradusError } from '../../core/errors.ts';
import { cacheEntry, cacheRoot } from '../cache-dir.ts';
import { compareVersions, findOnPath, isExecutable, runCommand } from './command.ts';
import { isAsRecorded } from './recorded-digests.ts';
import { archiveForHere, downloadReleased, RELEASES } from './released-archive.ts';
import type { Archives } from './released-archive.ts';
import { BINARIES, findBinary, requireBinary } from './server-binaries.ts';

// Two programs can be the Temporal server here: the server itself, with a configuration of ours, and the Temporal CLI, whose
// development server has its own database and the web interface in it.

export type TemporalKind = 'server' | 'cli';

export interface TemporalBinary {
  kind: TemporalKind;
  path: string;
  from: 'override' | 'cache' | 'path' | 'downloaded';
}

/** Of the server that a Temporal CLI has in it; that of 1.5.1 is what was tried. */
export const OLDEST_CLI_SERVER = '1.29';
/** What is downloaded where the internet is reached: the oldest release with such a server that was tried. */
const DOWNLOADED_CLI = 'v1.5.1';
const CLI_ARCHIVES: Archives = {
  'linux-x64': {
    name: 'temporal_cli_1.5.1_linux_amd64',
    sha256: 'ddc95e08b0b076efd4ea9733a3f488eb7d2be875f8834e616cd2a37358b4852d',
  },
  'linux-arm64': {
    name: 'temporal_cli_1.5.1_linux_arm64',
    sha256: 'bd1b0db9f18b051026de8bf6cc1505f2510f14bbb7a8b9a4a91fff46c77454f5',
  },
  'darwin-arm64': {
    name: 'temporal_cli_1.5.1_darwin_arm64',
    sha256: 'cca01b7ea35ad56e2a328d9ae596bf716bd22313ef63c7a761c88354457c2415',
  },
  'darwin-x64': {
    name: 'temporal_cli_1.5.1_darwin_amd64',
    sha256: 'bbb73e2a31135abe50a1f1cdb35030c42961df618e8ce9c60ae89f201540c5d9',
  },
};

/** `temporal version 1.5.1 (Server 1.29.1, UI 2.42.1)` → "1.29.1"; undefined for what is no Temporal CLI. */
export const serverOfCli = (printed: string): string | undefined =>
  /^temporal version \S+ \(Server (\d+\.\d+\.\d+)/.exec(printed)?.[1];

async function cliServer(file: string, env: NodeJS.ProcessEnv): Promise<string | undefined> {
  const printed = await runCommand(file, ['--version'], { env }).catch(() => undefined); // not runnable: as good as absent
  return printed && serverOfCli(printed.stdout);
}

const downloadedCli = (env: NodeJS.ProcessEnv): string =>
  path.join(cacheEntry(cacheRoot(env), { name: 'temporal-released', version: DOWNLOADED_CLI }), 'temporal');

/**
 * What can be the Temporal server, best first: what GRADUS_TEMPORAL_SERVER names, and then nothing else; what is in
 * the cache, the server that was built or the CLI that was downloaded; a `temporal` on PATH that is new enough. Where a server was built, others are looked
 * for only if they are `wanted`: a program has to be started to tell its version.
 * @throws GradusError infra/binary-missing when the environment names what cannot be run or is too old
 */
export async function findTemporals(
  env: NodeJS.ProcessEnv = process.env,
  wanted?: TemporalKind,
): Promise<TemporalBinary[]> {
  const own = await findBinary('temporal-server', env);
  if (own?.from === 'override') return [await overriding(own.path, env)];
  const found: TemporalBinary[] =
    own === undefined ? [] : [{ kind: 'server', path: own.path, from: 'cache' }];
  if (own !== undefined && wanted !== 'cli') return found;
  const downloaded = downloadedCli(env);
  if ((await isExecutable(downloaded)) && (await isAsRecorded(path.dirname(downloaded)))) {
    found.push({ kind: 'cli', path: downloaded, from: 'downloaded' });
  }
  const onPath = await findOnPath('temporal', env);
  const version = onPath === undefined ? undefined : await cliServer(onPath, env);
  if (version !== undefined && compareVersions(version, OLDEST_CLI_SERVER) >= 0) {
    found.push({ kind: 'cli', path: onPath!, from: 'path' });
  }
  return found;
}

async function overriding(file: string, env: NodeJS.ProcessEnv): Promise<TemporalBinary> {
  const version = await cliServer(file, env);
  if (version === undefined) return { kind: 'server', path: file, from: 'override' };
  if (compareVersions(version, OLDEST_CLI_SERVER) >= 0) return { kind: 'cli', path: file, from: 'override' };
  throw new GradusError(
    'infra',
    'binary-missing',
    `${BINARIES['temporal-server'].override} is set to ${file}, a Temporal CLI with server ${version}: ` +
      `${OLDEST_CLI_SERVER} or newer is needed, as in the CLI from 1.5 on.`,
  );
}

/**
 * The one for a folder with data of a server of the kind `begunWith`; they cannot read each other's.
 * @throws GradusError infra/binary-missing
 */
export async function requireTemporal(
  begunWith: TemporalKind | undefined,
  env: NodeJS.ProcessEnv = process.env,
): Promise<TemporalBinary> {
  const found = await findTemporals(env, begunWith);
  const fitting = found.find(({ kind }) => begunWith === undefined || kind === begunWith);
  if (fitting !== undefined) return fitting;
  if (found.length > 0) {
    throw new GradusError(
      'infra',
      'binary-missing',
      `The runs of this state folder are in the database of ${begunWith === 'cli' ? "a Temporal CLI's development server" : 'the Temporal server that Gradus builds'}, ` +
        `which ${found[0]!.path} does not read. Bring that one back (${BINARIES['temporal-server'].override} names it), or choose another state folder.`,
    );
  }
  return { kind: 'server', path: await requireBinary('temporal-server', env), from: 'cache' };
}

/** The CLI for people's commands: that of the server where it is one; undefined where there is none. */
export async function findCli(
  { kind, path: file }: TemporalBinary,
  env: NodeJS.ProcessEnv = process.env,
): Promise<string | undefined> {
  const own = await findBinary('temporal-cli', env);
  return own?.path ?? (kind === 'cli' ? file : undefined);
}

/** The Temporal CLI as its makers release it, in the cache; undefined, and said, where `downloadReleased` says no. */
export async function downloadTemporalCli(
  say: (text: string) => void,
  env: NodeJS.ProcessEnv = process.env,
  host = RELEASES,
  archive = archiveForHere(CLI_ARCHIVES),
): Promise<TemporalBinary | undefined> {
  const target = downloadedCli(env);
  const release = {
    title: `Temporal CLI ${DOWNLOADED_CLI}`,
    at: `temporalio/cli/releases/download/${DOWNLOADED_CLI}`,
    archive,
    member: 'temporal',
    target,
  };
  return (await downloadReleased(release, say, env, host))
    ? { kind: 'cli', path: target, from: 'downloaded' }
    : undefined;
}

/** Where each kind keeps its data, in the folder that is Temporal's. */
export const databaseOf = (dataDir: string, kind: TemporalKind): string =>
  path.join(dataDir, kind === 'cli' ? 'development-server.db' : 'temporal.db');

/** The kind of server whose data a folder has. */
export const begunWith = (dataDir: string): TemporalKind | undefined =>
  (['server', 'cli'] as const).find((kind) => existsSync(databaseOf(dataDir, kind)));
