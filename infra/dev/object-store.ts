import { existsSync } from 'node:fs';
import { mkdir, readdir, rm, stat } from 'node:fs/promises';
import path from 'node:path';
import { Client } from 'minio';
import { requireBinary } from '../setup/server-binaries.ts';
import { ManagedServer } from './managed-server.ts';
import type { ServerHandle, SuperviseOptions } from './managed-server.ts';
import { choosePort, LOOPBACK } from './ports.ts';
import { retryOtherPorts } from './retry-ports.ts';
import { ensureKeys } from './store-keys.ts';

const USUAL_PORT = 9000;
export const S3_PORT = { title: 'the object store', setting: '--s3-port' };
/** An upload in parts that was not touched for so long has no writer any more. */
const ORPHAN_AFTER_MS = 3600_000;

export interface ObjectServerOptions extends SuperviseOptions {
  /** Absolute; holds the objects and the keys. */
  dataDir: string;
  logFile: string;
  port?: number | undefined;
  recordedPort?: number | undefined;
}

export interface ObjectStoreAddress {
  endPoint: string;
  port: number;
  useSSL: false;
  accessKey: string;
  secretKey: string;
}

export interface ObjectStoreServer extends ServerHandle, ObjectStoreAddress {
  /** "127.0.0.1:PORT" */
  readonly address: string;
}

/**
 * Removes parts of uploads that nobody will complete: the store has no rule of its own for them. Younger ones stay,
 * since a writer that outlived the store may go on with its upload.
 * @returns how many uploads were removed
 */
export async function removeOrphanedUploads(objectsDir: string, now: number = Date.now()): Promise<number> {
  let removed = 0;
  for (const bucket of await foldersIn(objectsDir)) {
    const multipart = path.join(objectsDir, bucket, '.sgwtmp', 'multipart');
    for (const object of await foldersIn(multipart)) {
      for (const upload of await foldersIn(path.join(multipart, object))) {
        const folder = path.join(multipart, object, upload);
        if (now - (await lastTouched(folder)) < ORPHAN_AFTER_MS) continue;
        await rm(folder, { recursive: true, force: true });
        removed += 1;
      }
    }
  }
  return removed;
}

async function foldersIn(folder: string): Promise<string[]> {
  if (!existsSync(folder)) return [];
  const entries = await readdir(folder, { withFileTypes: true });
  return entries.filter((entry) => entry.isDirectory()).map((entry) => entry.name);
}

async function lastTouched(folder: string): Promise<number> {
  const files = await readdir(folder);
  const times = await Promise.all(
    [folder, ...files.map((file) => path.join(folder, file))].map((file) => stat(file)),
  );
  return Math.max(...times.map((stats) => stats.mtimeMs));
}

/**
 * An S3 server (versitygw) over a folder. Objects survive any kill of it; a put that was under way leaves nothing.
 * @throws GradusError infra/binary-missing, infra/port-taken, infra/server-start
 */
export async function startObjectStore(options: ObjectServerOptions): Promise<ObjectStoreServer> {
  const command = await requireBinary('versitygw');
  const objects = path.join(options.dataDir, 'objects');
  const versions = path.join(options.dataDir, 'versions');
  for (const folder of [objects, versions]) await mkdir(folder, { recursive: true });
  await removeOrphanedUploads(objects);
  const keys = await ensureKeys(options.dataDir);
  return retryOtherPorts(options.logFile, async (attempt) => {
    const port = await choosePort({
      ...S3_PORT,
      explicit: options.port,
      preferred: [attempt > 0 ? undefined : options.recordedPort, USUAL_PORT],
    });
    const address = `${LOOPBACK}:${port}`;
    const reached = { endPoint: LOOPBACK, port, useSSL: false as const, ...keys };
    const server = await ManagedServer.start(
      {
        title: 'the object store',
        command,
        args: ['--port', address, '--quiet', 'posix', '--versioning-dir', versions, objects],
        // Not as arguments: those are seen by every user of the machine.
        env: { ROOT_ACCESS_KEY_ID: keys.accessKey, ROOT_SECRET_ACCESS_KEY: keys.secretKey },
        logFile: options.logFile,
        // Another's store that took the port meanwhile is healthy, too, but does not know these keys.
        probe: async () => void (await clientOf(reached).listBuckets()),
      },
      options,
    );
    return Object.assign(server, { address, ...reached });
  });
}

/** Makes the bucket where it is not there yet. */
export async function ensureBucket(store: ObjectStoreAddress, bucket: string): Promise<void> {
  const client = clientOf(store);
  if (!(await client.bucketExists(bucket))) await client.makeBucket(bucket);
}

const clientOf = ({ endPoint, port, useSSL, accessKey, secretKey }: ObjectStoreAddress): Client =>
  new Client({ endPoint, port, useSSL, accessKey, secretKey, region: 'us-east-1' });
