import { connect } from '../activities/rollout/served/connection.ts';
import { lookAt } from '../activities/training/tinker/capabilities.ts';
import type { TinkerServer } from '../activities/training/tinker/capabilities.ts';
import { TinkerClient } from '../activities/training/tinker/client.ts';
import type { WorkerSettings } from './settings.ts';

/** How long one computation of a server may take, its queue included. */
const SECONDS = 3600;

/** To the server of Tinker's API that trains in the learner's place. */
export function tinkerConnection({ url, key, baseModel }: NonNullable<WorkerSettings['tinker']>) {
  const connection = connect(url, SECONDS, key);
  const client = new TinkerClient(connection, SECONDS);
  return {
    client,
    look: (signal: AbortSignal): Promise<TinkerServer> => lookAt(client, signal, baseModel),
    close: () => connection.close(),
  };
}
