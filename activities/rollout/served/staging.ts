import { createHash, randomUUID } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { ADAPTER_CONFIG } from '../../../engine/lora/peft-format.ts';
import { GradusError, messageOf } from '../../../core/errors.ts';
import type { BlobRef, CheckpointRef } from '../../../core/refs.ts';
import type { ServedPolicySpec } from '../../../core/schema/policy.ts';
import type { ObjectStore } from '../../../store/objects/object-store.ts';
import { tinkerKey } from '../../../store/keys.ts';
import { serverStates } from '../../../store/training/server-states.ts';
import { ONLY_LEARNERS, readManifest } from '../../../store/training/checkpoints.ts';
import { roundedVersion } from '../rounded-version.ts';
import { digestsOfRounded, writeRounded } from './rounded.ts';

export interface StagedCheckpoint {
  /** Under the staging folder; named after the digest of the weights. */
  name: string;
  /** Of an adapter alone; its base is what the server began with. */
  isAdapter: boolean;
  /** Where a server of Tinker's API has it: nothing of it lies in the folder. */
  saved?: string;
  /** What the step that made it started from, where it is of the same run. */
  parent: CheckpointRef | undefined;
}

type Dtype = ServedPolicySpec['dtype'];

/**
 * Puts a checkpoint into a folder that servers read, whole or not at all; what is there already is read again and compared.
 * With `bfloat16` its weights are rounded, and `staged.json` has the digests of what came of it; an adapter stays as it is.
 * Throws GradusError('policy', 'staging') when the folder cannot be written.
 */
export async function stageCheckpoint(
  store: ObjectStore,
  ref: CheckpointRef,
  folder: string,
  signal: AbortSignal,
  dtype?: Dtype,
): Promise<StagedCheckpoint> {
  const manifest = await readManifest(store, ref.manifest, { signal });
  const isAdapter = manifest.files[ADAPTER_CONFIG] !== undefined;
  const name = roundedVersion(ref.weights, isAdapter ? undefined : dtype);
  const to = join(folder, name);
  if (dtype === 'bfloat16' && !isAdapter) {
    const isThere = async () => {
      const digests = await digestsOfRounded(to, ref.weights);
      return digests !== null && isWhole(to, digests);
    };
    await putWhole(to, isThere, (begun) => writeRounded(store, ref, begun, signal), signal);
  } else {
    const files = Object.entries(manifest.files).filter(([file]) => !ONLY_LEARNERS.has(file));
    const write = async (begun: string) => {
      for (const [file, blob] of files) await writeFile(join(begun, file), await store.get(blob, { signal }));
    };
    await putWhole(to, () => isWhole(to, files), write, signal);
  }
  return { name, isAdapter, parent: manifest.parent };
}

/**
 * Where a server of Tinker's API has what its learner saved of a checkpoint; one without an adapter is the server's own model.
 * Throws GradusError('policy', 'staging') for an adapter that another learner trained.
 */
export async function savedCheckpoint(
  store: ObjectStore,
  ref: CheckpointRef,
  signal: AbortSignal,
): Promise<StagedCheckpoint> {
  const { files, run, parent } = await readManifest(store, ref.manifest, { signal });
  const isAdapter = files[ADAPTER_CONFIG] !== undefined;
  const name = ref.weights;
  if (!isAdapter) return { name, isAdapter, parent };
  const found = await store.find(tinkerKey(run, name), serverStates, { signal });
  if (found === null) {
    const why = `${ref.manifest.key} was not trained on a server of Tinker's API, which holds what it has trained`;
    throw new GradusError('policy', 'staging', `${why}: start its learner with GRADUS_TINKER_URL`);
  }
  return { name, isAdapter, parent, saved: found.state };
}

/** Writes beside the folder, which comes to be in one moment. */
async function putWhole(
  to: string,
  isThere: () => Promise<boolean>,
  write: (begun: string) => Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  if (await isThere()) return;
  const begun = join(dirname(to), `.${basename(to)}-${randomUUID()}`);
  try {
    await mkdir(begun, { recursive: true });
    await write(begun);
    await rm(to, { recursive: true, force: true });
    await rename(begun, to);
  } catch (error) {
    await rm(begun, { recursive: true, force: true });
    signal.throwIfAborted();
    // Another worker has put it there meanwhile.
    if (await isThere()) return;
    if (error instanceof GradusError) throw error;
    const why = `${to} cannot be written: ${messageOf(error)}. Give policy.folder a folder that workers write and servers read`;
    throw new GradusError('policy', 'staging', why, { retryable: true, cause: error });
  }
}

async function isWhole(
  folder: string,
  files: readonly [string, Pick<BlobRef, 'sha256'>][],
): Promise<boolean> {
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
