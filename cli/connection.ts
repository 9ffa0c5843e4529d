import type { Client } from '@temporalio/client';
import type { Command } from 'commander';
import type { Sources } from '../runs/sources.ts';
import type { ObjectStore } from '../store/objects/object-store.ts';
import { commandLine, IN_CHECKOUT } from '../core/installation.ts';
import { readStack, stackEnvironment } from '../infra/dev/stack-addresses.ts';
import { DEFAULT_STATE_DIR } from '../infra/dev/state-dir.ts';
import { readSettings } from '../workers/settings.ts';
import type { WorkerSettings } from '../workers/settings.ts';

// The clients are loaded when they are needed: each takes half of the second that a command has.

export interface ConnectionOptions {
  stateDir?: string;
}

/** The variable that stands for `--state-dir`; `npm run dev` prints it where the folder is not the usual one. */
export const STATE_DIR = 'GRADUS_STATE_DIR';

/** The flag by which a command finds servers that another process holds up. */
export function withConnectionFlags(command: Command): Command {
  return command.option(
    '--state-dir <dir>',
    `the state folder of \`${commandLine('dev')}\` (default: ${STATE_DIR}, or .gradus in ${IN_CHECKOUT ? 'the checkout' : 'this folder'}); ` +
      'where GRADUS_S3_URL is set, environment variables name the servers instead',
  );
}

/**
 * Where servers are: as the environment says where GRADUS_S3_URL is set, as for workers; else those of the state folder.
 * Throws what `readSettings` and `readStack` throw.
 */
export async function settingsOf({ stateDir }: ConnectionOptions): Promise<WorkerSettings> {
  if (stateDir === undefined && process.env['GRADUS_S3_URL'] !== undefined) return readSettings();
  const stack = await readStack(stateDir ?? process.env[STATE_DIR] ?? DEFAULT_STATE_DIR);
  return readSettings({ ...process.env, ...stackEnvironment(stack) });
}

/** Where Temporal's own pages are, of the servers of a state folder; null where the environment says where servers are. */
export async function temporalUiOf({ stateDir }: ConnectionOptions): Promise<string | null> {
  if (stateDir === undefined && process.env['GRADUS_S3_URL'] !== undefined)
    return process.env['TEMPORAL_UI_ADDRESS'] ?? null;
  const { temporal } = await readStack(stateDir ?? process.env[STATE_DIR] ?? DEFAULT_STATE_DIR);
  return temporal.uiAddress ?? null;
}

/** Whoever looks is told within so long that the store is away. */
const FAIL_FAST = { timeoutMs: 4000, failFast: true };

interface StorePatience {
  /** For what moves gigabytes, or deletes: the store has all the time that a worker gives it. */
  patient?: boolean;
}

/** Gives `use` the object store to read from, as it is, and closes it afterwards. */
export async function withStoreOf<T>(
  options: ConnectionOptions,
  use: (store: ObjectStore) => Promise<T>,
  { patient = false }: StorePatience = {},
): Promise<T> {
  const { ObjectStore } = await import('../store/objects/object-store.ts');
  const store = ObjectStore.open({ ...(await settingsOf(options)).store, ...(!patient && FAIL_FAST) });
  try {
    return await use(store);
  } finally {
    store.close();
  }
}

/** The same for commands that write: the bucket is made, and the server's conditional writes are tried. */
export async function withWritableStore<T>(
  options: ConnectionOptions,
  use: (store: ObjectStore) => Promise<T>,
): Promise<T> {
  const { ObjectStore } = await import('../store/objects/object-store.ts');
  const store = await ObjectStore.connect((await settingsOf(options)).store);
  try {
    return await use(store);
  } finally {
    store.close();
  }
}

/** A server that is there has this time to say so. */
const CONNECT_MS = 10_000;

/**
 * Gives `use` a Temporal client that outlives what stalls on the way, and closes its connection afterwards: for commands
 * that change something, or wait. Throws GradusError('infra', 'temporal-unreachable').
 */
export async function withTemporal<T>(
  options: ConnectionOptions,
  use: (client: Client) => Promise<T>,
): Promise<T> {
  const { temporalAddress, namespace } = await settingsOf(options);
  const { Client } = await import('@temporalio/client');
  const { openConnection } = await import('../runs/temporal/temporal-connection.ts');
  const { fromTemporal } = await import('../runs/temporal/from-temporal.ts');
  const { patientConnection: patiently } = await import('./patient-connection.ts');
  const connection = openConnection(temporalAddress);
  const client = new Client({ connection, namespace });
  try {
    // Nobody listens where nothing was started: that is said at once. What stalls later is waited for.
    await fromTemporal(client, CONNECT_MS, () => connection.workflowService.getSystemInfo({}));
    patiently(connection, temporalAddress, { say: (text) => console.error(text) });
    return await use(client);
  } finally {
    await connection.close();
  }
}

/**
 * Gives `use` the store to read from, and Temporal as it is just now: whoever looks is told what is away, and waits for
 * nothing. Both are closed afterwards. Throws GradusError('infra', 'temporal-unreachable' | 'temporal-refused').
 */
export async function withSources<T>(
  options: ConnectionOptions,
  use: (sources: Sources) => Promise<T>,
  { patient = false }: StorePatience = {},
): Promise<T> {
  const settings = await settingsOf(options);
  const { Client } = await import('@temporalio/client');
  const { openConnection } = await import('../runs/temporal/temporal-connection.ts');
  const { temporalError } = await import('../runs/temporal/temporal-away.ts');
  const { ObjectStore } = await import('../store/objects/object-store.ts');
  const connection = openConnection(settings.temporalAddress);
  const temporal = new Client({ connection, namespace: settings.namespace });
  const store = ObjectStore.open({ ...settings.store, ...(!patient && FAIL_FAST) });
  try {
    return await use({ store, temporal });
  } catch (error) {
    throw temporalError(temporal, error);
  } finally {
    store.close();
    await connection.close();
  }
}
