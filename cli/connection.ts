import { Client, Connection } from '@temporalio/client';
import type { Command } from 'commander';
import { ObjectStore } from '../activities/store/object-store.ts';
import { GradusError, messageOf } from '../core/errors.ts';
import { readStack } from '../infra/dev/stack.ts';
import { DEFAULT_STATE_DIR } from '../infra/dev/state-dir.ts';
import { readSettings } from '../workers/settings.ts';
import type { WorkerSettings } from '../workers/settings.ts';
import { stackEnvironment } from './stack-with-workers.ts';

export interface ConnectionOptions {
  stateDir?: string;
}

/** The flag by which a command finds servers that another process holds up. */
export function withConnectionFlags(command: Command): Command {
  return command.option(
    '--state-dir <dir>',
    'the folder of the servers that `npm run dev` holds up (default: .gradus in the checkout); ' +
      'where GRADUS_S3_URL is set, the environment says where they are instead',
  );
}

/**
 * Where servers are: as the environment says where GRADUS_S3_URL is set, as for workers; else those of the state folder.
 * Throws what `readSettings` and `readStack` throw.
 */
export async function settingsOf({ stateDir }: ConnectionOptions): Promise<WorkerSettings> {
  if (stateDir === undefined && process.env['GRADUS_S3_URL'] !== undefined) return readSettings();
  const stack = await readStack(stateDir ?? DEFAULT_STATE_DIR);
  return readSettings({ ...process.env, ...stackEnvironment(stack) });
}

/** Gives `use` the object store, and closes it afterwards. */
export async function withStore<T>(
  options: ConnectionOptions,
  use: (store: ObjectStore) => Promise<T>,
): Promise<T> {
  const store = await ObjectStore.connect((await settingsOf(options)).store);
  try {
    return await use(store);
  } finally {
    store.close();
  }
}

/**
 * Gives `use` a Temporal client, and closes its connection afterwards.
 * Throws GradusError('infra', 'temporal-unreachable').
 */
export async function withTemporal<T>(
  options: ConnectionOptions,
  use: (client: Client) => Promise<T>,
): Promise<T> {
  const { temporalAddress, namespace } = await settingsOf(options);
  const connection = await Connection.connect({ address: temporalAddress }).catch((cause: unknown) => {
    throw new GradusError(
      'infra',
      'temporal-unreachable',
      `no Temporal server answers at ${temporalAddress} (${messageOf(cause)}): start one with "npm run dev", or set TEMPORAL_ADDRESS`,
      { retryable: true, cause },
    );
  });
  try {
    return await use(new Client({ connection, namespace }));
  } finally {
    await connection.close();
  }
}
