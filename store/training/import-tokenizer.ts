import { GradusError } from '../../core/errors.ts';
import type { CheckpointRef } from '../../core/refs.ts';
import { openHfDirectory } from '../../engine/hf-directory.ts';
import { writeSafetensors } from '../../engine/safetensors/safetensors.ts';
import { sha256Hex } from '../digest.ts';
import { checkpointFolder } from '../keys.ts';
import type { CallOptions, ObjectStore } from '../objects/object-store.ts';
import { claimRun } from '../run/claim-run.ts';
import type { RunClaim } from '../run/run-claim.ts';
import { assertUsable } from './import-model.ts';
import { CREATED_BY, manifests, policyVersion, WEIGHTS_ELSEWHERE } from './manifest.ts';
import type { CheckpointManifest } from './manifest.ts';

/** How much of the digest is in the name. */
const NAME_DIGITS = 12;

/**
 * The small files of a Hugging Face folder, without its weights, as checkpoint 0 of a run of its own: for a model that a
 * server holds. The run's name is `name` with a digest of the files behind it, so other files are another run.
 * Throws what `openHfDirectory` and `assertUsable` throw, and GradusError('store', 'name-taken').
 */
export async function importTokenizer(
  store: ObjectStore,
  folder: string,
  name: string,
  options: CallOptions = {},
): Promise<{ run: string; ref: CheckpointRef }> {
  const { run, weights, instead, files } = await readTokenizer(folder, name);
  const claim: RunClaim = { import: weights, spec: null };
  const taken = await claimRun(store, run, claim, options);
  if (taken?.import !== weights)
    throw new GradusError(
      'store',
      'name-taken',
      `a run is called "${run}" in this store, or one that was deleted has left something there: give --as`,
    );
  const at = checkpointFolder(run, 0, weights);
  const contents = new Map([
    ...files,
    ['optimizer.safetensors', writeSafetensors(new Map(), { updates: '0' })] as const,
    [WEIGHTS_ELSEWHERE, instead] as const,
  ]);
  const conflict = (key: string): GradusError =>
    new GradusError('store', 'name-taken', `${key} has other content in this store: give --as`);
  const stored = [...contents].map(async ([file, bytes]) => {
    const contentType = file.endsWith('.json') ? 'application/json' : 'application/octet-stream';
    return [file, await store.putSame(`${at}/${file}`, bytes, { ...options, contentType, conflict })];
  });
  const manifest: CheckpointManifest = {
    format: 'gradus.checkpoint/1',
    run,
    stage: 'import',
    step: 0,
    backend: 'none',
    updates: 0,
    createdBy: CREATED_BY,
    files: Object.fromEntries(await Promise.all(stored)) as CheckpointManifest['files'],
  };
  const kept = await store.putIfAbsent(`${at}/manifest.json`, manifests, manifest, options);
  return { run, ref: { manifest: kept.ref, weights: policyVersion(kept.value), step: 0 } };
}

/**
 * What would be stored of a folder's small files, and the name of the run that has them. Throws what `openHfDirectory` and
 * `assertUsable` throw.
 */
export async function readTokenizer(folder: string, name: string) {
  const { config, files } = await openHfDirectory(folder);
  assertUsable(folder, config, files);
  const digests = Object.fromEntries(
    [...files].map(([file, bytes]) => [file, sha256Hex(bytes)]).toSorted(([a], [b]) => (a! < b! ? -1 : 1)),
  ) as Record<string, string>;
  const instead = new TextEncoder().encode(`${JSON.stringify({ files: digests }, null, 2)}\n`);
  const weights = sha256Hex(instead);
  return { run: `${name}-${weights.slice(0, NAME_DIGITS)}`, weights, instead, files };
}
