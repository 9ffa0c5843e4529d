import { closest } from 'fastest-levenshtein';
import { GradusError } from '../../core/errors.ts';
import type { CurriculumSpec } from '../../core/spec.ts';
import { runKey, runPrefix } from './keys.ts';
import { runClaims } from './run-claim.ts';
import type { CallOptions, ObjectStore } from './object-store.ts';

/** Throws GradusError('store', 'no-run') that names the nearest one unless the store holds something of the run. */
export async function assertRun(store: ObjectStore, run: string, options: CallOptions = {}): Promise<void> {
  const of = await store.listFolder(runPrefix(run), options);
  if (of.folders.length + of.keys.length > 0) return;
  const { folders: runs } = await store.listFolder('runs/', options);
  const names = runs.map((folder) => folder.slice('runs/'.length, -1));
  throw new GradusError(
    'store',
    'no-run',
    `there is no run "${run}" in this store` +
      (names.length === 0 ? ', and no other' : `; did you mean "${closest(run, names)}"?`),
  );
}

/** The spec of a run; null of one that was imported. Throws as `assertRun` does. */
export async function specOfRun(
  store: ObjectStore,
  run: string,
  options: CallOptions = {},
): Promise<CurriculumSpec | null> {
  await assertRun(store, run, options);
  return (await store.find(runKey(run), runClaims, options))?.spec ?? null;
}
