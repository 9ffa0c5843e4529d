import path from 'node:path';
import { GradusError } from '../../core/errors.ts';
import { commandLine } from '../../core/installation.ts';
import type { ObjectStoreAddress } from './object-store.ts';
import { DEFAULT_STATE_DIR, readRecord, storeDir } from './state-dir.ts';
import { readKeys } from './store-keys.ts';

// What a client of the servers needs, without what starts them: commands of a second read it.

export interface ObjectStoreLocation extends ObjectStoreAddress {
  bucket: string;
}

/** What a client needs to know. */
export interface StackAddresses {
  temporal: {
    /** "127.0.0.1:PORT" */
    address: string;
    namespace: string;
    /** "http://127.0.0.1:PORT"; absent when the web interface is off. */
    uiAddress?: string;
  };
  objectStore: ObjectStoreLocation;
}

/**
 * Where the servers of a state folder are, for tools that use a stack which another process holds up.
 * @throws GradusError infra/no-stack when none was ever started there
 */
export async function readStack(stateDirectory: string = DEFAULT_STATE_DIR): Promise<StackAddresses> {
  const stateDir = path.resolve(stateDirectory);
  const { temporal, objectStore } = await readRecord(stateDir);
  if (temporal === undefined || objectStore === undefined) {
    throw new GradusError(
      'infra',
      'no-stack',
      `No servers were started with ${stateDir}. Run "${commandLine('dev')}" first, in another terminal; where it has another --state-dir, set GRADUS_STATE_DIR as it prints.`,
    );
  }
  const { address, namespace, uiAddress } = temporal;
  const keys = await readKeys(storeDir(stateDir));
  return {
    temporal: { address, namespace, ...(uiAddress !== undefined && { uiAddress }) },
    objectStore: { ...objectStore, useSSL: false, ...keys },
  };
}

/** Held by the process that holds the servers of a state folder up. */
export const stackLock = (stateDir: string): string => path.join(stateDir, 'stack.lock');

/** The variables that say where the servers of a stack are, to workers and commands. */
export function stackEnvironment({ temporal, objectStore }: StackAddresses): Record<string, string> {
  return {
    TEMPORAL_ADDRESS: temporal.address,
    TEMPORAL_NAMESPACE: temporal.namespace,
    GRADUS_S3_URL: `http://${objectStore.endPoint}:${objectStore.port}`,
    GRADUS_S3_ACCESS_KEY: objectStore.accessKey,
    GRADUS_S3_SECRET_KEY: objectStore.secretKey,
    GRADUS_S3_BUCKET: objectStore.bucket,
  };
}
