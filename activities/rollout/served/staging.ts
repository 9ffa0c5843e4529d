import { createHash, randomUUID } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { ADAPTER_CONFIG } from '../../../engine/lora/peft-format.ts';
import { GradusError, messageOf } from '../../../core/errors.ts';
import type { BlobRef, CheckpointRef } from '../../../core/refs.ts';
import type { ObjectStore } from '../../../store/objects/object-store.ts';
import { ONLY_LEARNERS, readManifest } from '../../../store/training/checkpoints.ts';

export interface StagedCheckpoint {
  /** Under the staging folder; named after the digest of the weights. */
  name: string;
  /** Of an adapter alone; its base is what the server began with. */
  isAdapter: boolean;
  /** What the step that made it started from, where it is of the same run. */
  parent: CheckpointRef | undefined;
}

/**
 * Puts a checkpoint into a folder that servers read, whole or not at all; what is there already is read again and compared.
 * Throws GradusError('policy', 'staging') when the folder cannot be written.
 */
export async function stageCheckpoint(
  store: ObjectStore,
  ref: CheckpointRef,
  folder: string,
  signal: AbortSignal,
): Promise<StagedCheckpoint> {
  const manifest = await readManifest(store, ref.manifest, { signal });
  const files = Object.entries(manifest.files).filter(([name]) => !ONLY_LEARNERS.has(name));
  const isAdapter = manifest.files[ADAPTER_CONFIG] !== undefined;
  const staged = { name: ref.weights, isAdapter, parent: manifest.parent };
  const to = join(folder, ref.weights);
  if (await isWhole(to, files)) return staged;
  const begun = join(folder, `.${ref.weights}-${randomUUID()}`);
  try {
    await mkdir(begun, { recursive: true });
    for (const [name, file] of files) await writeFile(join(begun, name), await store.get(file, { signal }));
    await rm(to, { recursive: true, force: true });
    await rename(begun, to);
  } catch (error) {
    await rm(begun, { recursive: true, force: true });
    signal.throwIfAborted();
    // Another worker has put it there meanwhile.
    if (await isWhole(to, files)) return staged;
    if (error instanceof GradusError) throw error;
    const why = `${to} cannot be written: ${messageOf(error)}. Give policy.folder a folder that workers write and servers read`;
    throw new GradusError('policy', 'staging', why, { retryable: true, cause: error });
  }
  return staged;
}

async function isWhole(folder: string, files: readonly [string, BlobRef][]): Promise<boolean> {
  for (const [name, { sha256 }] of files) {
    const hash = createHash('sha256');
    try {
      await pipeline(createReadStream(join(folder, name)), hash);
    } catch {
      // Not there, or not to be read: it is put there again.
      return false;
    }
    if (hash.digest('hex') !== sha256) return false;
  }
  return true;
}
