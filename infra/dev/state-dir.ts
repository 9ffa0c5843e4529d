import { existsSync } from 'node:fs';
import { chmod, mkdir, readFile, rename, rm, statfs, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { GradusError, messageOf } from '../../core/errors.ts';
import { IN_CHECKOUT } from '../../core/installation.ts';

/** Where the dev servers keep their data: in the checkout, or in the folder of the person's own project. */
export const DEFAULT_STATE_DIR = IN_CHECKOUT
  ? path.resolve(import.meta.dirname, '..', '..', '.gradus')
  : path.resolve('.gradus');

/** Enough for the servers' own data and a few checkpoints of the examples. */
const LEAST_FREE_BYTES = 256 * 2 ** 20;

export const temporalDir = (stateDir: string): string => path.join(stateDir, 'temporal');
export const storeDir = (stateDir: string): string => path.join(stateDir, 'object-store');
export const logsDir = (stateDir: string): string => path.join(stateDir, 'logs');
export const blobCacheDir = (stateDir: string): string => path.join(stateDir, 'blob-cache');

/** Trajectories, keys and logs are their owner's alone. */
const PRIVATE = 0o700;

/**
 * Makes the folder and those in it, which only their owner may look into, and sees that it can be written to and that
 * there is room. A folder that was there keeps its own mode.
 * @throws GradusError infra/state-dir, infra/disk-full
 */
export async function prepareStateDir(stateDir: string, leastFree: number = LEAST_FREE_BYTES): Promise<void> {
  try {
    await mkdir(stateDir, { recursive: true, mode: PRIVATE });
    for (const folder of [temporalDir, storeDir, logsDir, blobCacheDir].map((of) => of(stateDir))) {
      await mkdir(folder, { recursive: true, mode: PRIVATE });
      // Earlier versions left them open to everybody.
      await chmod(folder, PRIVATE);
    }
    const probe = path.join(stateDir, `.probe-${process.pid}`);
    await writeFile(probe, Buffer.alloc(4096));
    await rm(probe);
  } catch (error) {
    if (isFull(error)) throw diskFull(stateDir, 0, leastFree);
    throw new GradusError(
      'infra',
      'state-dir',
      `The state folder ${stateDir} cannot be written to (${messageOf(error)}). ` +
        `Make it writable, or choose another one.`,
      { cause: error },
    );
  }
  const { bavail, bsize } = await statfs(stateDir);
  if (bavail * bsize < leastFree) throw diskFull(stateDir, bavail * bsize, leastFree);
}

function isFull(error: unknown): boolean {
  return ['ENOSPC', 'EDQUOT'].includes((error as NodeJS.ErrnoException).code ?? '');
}

function diskFull(stateDir: string, free: number, needed: number): GradusError {
  const megabytes = (bytes: number) => `${Math.round(bytes / 2 ** 20)} MB`;
  return new GradusError(
    'infra',
    'disk-full',
    `The disk of ${stateDir} has ${megabytes(free)} left and ${megabytes(needed)} are needed. ` +
      `Free some space, or choose a state folder on another disk. Nothing was lost.`,
    { retryable: true },
  );
}

/** What is kept between starts, so that servers come back at the addresses that clients know. */
export interface StackRecord {
  temporal?: { address: string; uiAddress?: string; namespace: string; ports: Record<string, number> };
  objectStore?: { endPoint: string; port: number; bucket: string };
}

const recordFile = (stateDir: string) => path.join(stateDir, 'stack.json');

/** @returns an empty record where no stack was started yet */
export async function readRecord(stateDir: string): Promise<StackRecord> {
  if (!existsSync(recordFile(stateDir))) return {};
  const text = await readFile(recordFile(stateDir), 'utf8');
  try {
    return JSON.parse(text) as StackRecord;
  } catch (error) {
    throw new GradusError(
      'infra',
      'state-dir',
      `${recordFile(stateDir)} is not JSON. Delete it: new ports will be chosen, the data stays.`,
      { cause: error },
    );
  }
}

/** Written beside and renamed, so that a kill leaves the old record or the new one. */
export async function writeRecord(stateDir: string, record: StackRecord): Promise<void> {
  const file = recordFile(stateDir);
  await writeFile(`${file}.new`, `${JSON.stringify(record, undefined, 2)}\n`);
  await rename(`${file}.new`, file);
}
