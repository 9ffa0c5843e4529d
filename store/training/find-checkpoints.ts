import { DAMAGE } from '../../core/damage.ts';
import { GradusError } from '../../core/errors.ts';
import { checkpointName, readCheckpointName } from '../../core/fields.ts';
import { commandLine } from '../../core/installation.ts';
import type { CheckpointRef } from '../../core/refs.ts';
import { readManifest } from './checkpoints.ts';
import { checkpointsPrefix } from '../keys.ts';
import { policyVersion } from './manifest.ts';
import type { CheckpointManifest } from './manifest.ts';
import type { CallOptions, ObjectStore } from '../objects/object-store.ts';

export interface FoundCheckpoint {
  ref: CheckpointRef;
  manifest: CheckpointManifest;
}

/** A folder that is no checkpoint: begun and not ended, half deleted, or damaged. */
export interface IncompleteCheckpoint {
  folder: string;
  step: number;
  keys: string[];
  hasManifest: boolean;
  reason: string;
}

/**
 * The checkpoints of a run by ascending step. Only a manifest makes a folder one, and only while every file that it
 * names is there in full length (digests are checked on loading); the rest is listed as incomplete, with a reason.
 */
export async function findCheckpoints(
  store: ObjectStore,
  run: string,
  options: CallOptions = {},
): Promise<{ checkpoints: FoundCheckpoint[]; incomplete: IncompleteCheckpoint[] }> {
  const prefix = checkpointsPrefix(run);
  const sizes = new Map<string, number>();
  const folders = new Map<string, string[]>();
  for (const { key, bytes } of await store.list(prefix, options)) {
    const folder = key.slice(0, key.indexOf('/', prefix.length));
    sizes.set(key, bytes);
    folders.set(folder, [...(folders.get(folder) ?? []), key]);
  }
  const checkpoints: FoundCheckpoint[] = [];
  const incomplete: IncompleteCheckpoint[] = [];
  await Promise.all(
    [...folders].map(async ([folder, keys]) => {
      const manifestKey = `${folder}/manifest.json`;
      const found = sizes.has(manifestKey)
        ? await open(store, manifestKey, sizes, options)
        : 'it has no manifest';
      if (typeof found !== 'string') checkpoints.push(found);
      else {
        const step = Number.parseInt(folder.slice(prefix.length), 10);
        incomplete.push({ folder, step, keys, hasManifest: sizes.has(manifestKey), reason: found });
      }
    }),
  );
  return {
    checkpoints: checkpoints.toSorted(
      (a, b) => a.ref.step - b.ref.step || (a.ref.manifest.key < b.ref.manifest.key ? -1 : 1),
    ),
    incomplete: incomplete.toSorted((a, b) => (a.folder < b.folder ? -1 : 1)),
  };
}

/**
 * The checkpoint of a run at a step, or its last one: an older one does not stand in for a last one that is damaged.
 * Throws GradusError('store', 'no-checkpoint') that says which there are, and what is damaged.
 */
export async function checkpointOf(
  store: ObjectStore,
  { run, step }: { run: string; step: number | null },
  options: CallOptions = {},
): Promise<CheckpointRef> {
  const { checkpoints, incomplete } = await findCheckpoints(store, run, options);
  const found = checkpoints.findLast(({ ref }) => step === null || ref.step === step);
  // Without a manifest it was begun, or is being deleted.
  const damaged = incomplete.find(
    (one) => one.hasManifest && (step === null || one.step === step) && one.step > (found?.ref.step ?? -1),
  );
  if (found && !damaged) return found.ref;
  const steps = checkpoints.map(({ ref }) => ref.step);
  if (damaged) {
    const others =
      steps.length === 0
        ? ''
        : `, or name another one of it: ${steps.map((one) => `${run}@${one}`).join(', ')}`;
    throw new GradusError(
      'store',
      'no-checkpoint',
      `the checkpoint of step ${damaged.step} of "${run}" is damaged (${damaged.reason}): restore its files${others}`,
    );
  }
  throw new GradusError(
    'store',
    'no-checkpoint',
    steps.length === 0
      ? `the run "${run}" has no checkpoint in this store: name another one, or bring one in by "${commandLine('import')}"`
      : `the run "${run}" has no checkpoint of step ${step}; there are: ${steps.join(', ')}`,
  );
}

/** The key of a checkpoint's folder or manifest, with or without its bucket. */
const KEY = /^(?:s3:\/\/[^/]+\/)?(runs\/([^/]+)\/checkpoints\/[^/]+)(?:\/(?:manifest\.json)?)?$/;

/**
 * The checkpoint that `RUN`, `RUN@STEP` or its key names, and the run that it is of.
 * Throws GradusError('store', 'no-checkpoint') that says which there are.
 */
export async function checkpointNamed(
  store: ObjectStore,
  named: string,
  options: CallOptions = {},
): Promise<{ run: string; ref: CheckpointRef }> {
  const [, folder, ofKey] = KEY.exec(named) ?? [];
  if (folder === undefined) {
    const name = checkpointName.safeParse(named);
    if (!name.success) {
      const what = name.error.issues[0]!.message;
      throw new GradusError('store', 'no-checkpoint', `${JSON.stringify(named)} is no checkpoint: ${what}`);
    }
    const { run, step } = readCheckpointName(named);
    return { run, ref: await checkpointOf(store, { run, step }, options) };
  }
  const run = ofKey!;
  const { checkpoints, incomplete } = await findCheckpoints(store, run, options);
  const found = checkpoints.find(({ ref }) => ref.manifest.key === `${folder}/manifest.json`);
  if (found) return { run, ref: found.ref };
  const broken = incomplete.find((one) => one.folder === folder);
  const there = checkpoints.map(({ ref }) => ref.manifest.key.split('/').at(-2));
  throw new GradusError(
    'store',
    'no-checkpoint',
    broken
      ? `${folder} is no checkpoint: ${broken.reason}`
      : `there is no checkpoint ${folder}; ${run} has ${there.join(', ') || 'none'}`,
  );
}

/** The checkpoint, or why it is none. */
async function open(
  store: ObjectStore,
  manifestKey: string,
  sizes: ReadonlyMap<string, number>,
  options: CallOptions,
): Promise<FoundCheckpoint | string> {
  try {
    const blob = await store.head(manifestKey, options);
    if (!blob) return 'its manifest was just deleted';
    const manifest = await readManifest(store, blob, options);
    for (const { key, bytes } of Object.values(manifest.files)) {
      if (sizes.get(key) !== bytes) return `${key} has ${sizes.get(key) ?? 'no'} bytes, not ${bytes}`;
    }
    if (manifest.base && sizes.get(manifest.base.manifest.key) !== manifest.base.manifest.bytes)
      return `its base ${manifest.base.manifest.key} is not there`;
    return { ref: { manifest: blob, weights: policyVersion(manifest), step: manifest.step }, manifest };
  } catch (error) {
    // A damaged manifest is a fact about this folder; a server that is away is not.
    if (error instanceof GradusError && !error.retryable && DAMAGE.has(error.type)) return error.message;
    throw error;
  }
}
