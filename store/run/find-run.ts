import { GradusError } from '../../core/errors.ts';
import { commandLine } from '../../core/installation.ts';
import type { CurriculumSpec } from '../../core/schema/curriculum-spec.ts';
import { didYouMean, suggestion } from '../../core/did-you-mean.ts';
import { rolloutsOfRun, runKey, runPrefix } from '../keys.ts';
import { runClaims } from './run-claim.ts';
import type { CallOptions, ObjectStore } from '../objects/object-store.ts';
import { unlessDamaged } from '../objects/unless-damaged.ts';

/** Throws GradusError('store', 'no-run'), with the name that is near if one is, unless the store holds something of the run. */
export async function assertRun(store: ObjectStore, run: string, options: CallOptions = {}): Promise<void> {
  const of = await store.listFolder(runPrefix(run), options);
  if (of.folders.length + of.keys.length > 0) return;
  const { folders: runs } = await store.listFolder('runs/', options);
  const names = runs.map((folder) => folder.slice('runs/'.length, -1));
  throw new GradusError(
    'store',
    'no-run',
    `there is no run "${run}" in this store` +
      (names.length === 0
        ? ', and no other'
        : suggestion(run, names) || `; "${commandLine('runs')}" lists those there are`),
  );
}

/** Throws GradusError('store', 'no-stage') that names those there are unless episodes of this stage are kept. */
export async function assertStage(
  store: ObjectStore,
  run: string,
  stage: string,
  options: CallOptions = {},
): Promise<void> {
  const above = rolloutsOfRun(run);
  const { folders } = await store.listFolder(above, options);
  const stages = folders.map((folder) => folder.slice(above.length, -1));
  if (stages.includes(stage)) return;
  const which =
    stages.length === 0
      ? ', and of no other: none of its steps has rolled out yet'
      : didYouMean(stage, stages);
  throw new GradusError('store', 'no-stage', `no episodes of a stage "${stage}" of ${run} are kept${which}`);
}

/**
 * The spec of a run; null of one that was imported, and of one whose spec is damaged where there is a list that takes why.
 * Throws as `assertRun` does.
 */
export async function specOfRun(
  store: ObjectStore,
  run: string,
  { damaged, ...options }: CallOptions & { damaged?: string[] } = {},
): Promise<CurriculumSpec | null> {
  await assertRun(store, run, options);
  const claim = await unlessDamaged(damaged, () => store.find(runKey(run), runClaims, options));
  return claim?.spec ?? null;
}
