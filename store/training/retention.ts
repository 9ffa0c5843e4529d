import type { CheckpointRef } from '../../core/refs.ts';
import { z } from 'zod';
import { jsonCodec } from '../codec.ts';
import { findCheckpoints } from './find-checkpoints.ts';
import { pinsKey, pinsPrefix } from '../keys.ts';
import { checkpointRef } from './manifest.ts';
import { checkpointsReadBy, trainRequestOf } from './train-request.ts';
import type { CallOptions, ObjectStore } from '../objects/object-store.ts';

export interface RetentionRule {
  /** The newest so many; the newest one is kept in any case, because a run goes on from it. */
  keepLast: number;
  /** The so many with the highest score. */
  keepBest: number;
  /** Every checkpoint whose step is a multiple; 0 for none. */
  keepEvery: number;
  /**
   * Kept whatever the rest says: the reference policy of the KL, the warm start, what a stage may roll back to. What other
   * runs have pinned is kept besides.
   */
  pinned: readonly CheckpointRef[];
  /** Checkpoints of later steps stay: a run that was reset is done again, and what came after is still to be read. */
  upTo?: number;
}

export interface RetentionCandidate {
  step: number;
  ref: CheckpointRef;
  /** Higher is better; without one it is not among the best. */
  score?: number;
  /** What it cannot be loaded without, or not be gone on from: its base, and what makes its moments again. All are older. */
  needs?: readonly CheckpointRef[] | undefined;
}

/** What no part of the rule keeps, oldest first. Of equal scores the later step is the better one. */
export function checkpointsToDelete(
  all: readonly RetentionCandidate[],
  { keepLast, keepBest, keepEvery, pinned, upTo = Number.POSITIVE_INFINITY }: RetentionRule,
): CheckpointRef[] {
  const byAge = all.toSorted((a, b) => b.step - a.step);
  const byScore = byAge
    .filter(({ score }) => score !== undefined)
    .toSorted((a, b) => b.score! - a.score! || b.step - a.step);
  const kept = new Set<string>(pinned.map(({ manifest }) => manifest.key));
  for (const { ref } of byAge.slice(0, Math.max(1, keepLast))) kept.add(ref.manifest.key);
  for (const { ref } of byScore.slice(0, keepBest)) kept.add(ref.manifest.key);
  for (const { step, ref } of byAge) if (keepEvery > 0 && step % keepEvery === 0) kept.add(ref.manifest.key);
  // What a needed one needs in its turn is older than itself, so that one pass meets all.
  for (const { ref, needs } of byAge) {
    if (kept.has(ref.manifest.key)) for (const { manifest } of needs ?? []) kept.add(manifest.key);
  }
  return byAge
    .filter(({ step, ref }) => step <= upTo && !kept.has(ref.manifest.key))
    .map(({ ref }) => ref)
    .toReversed();
}

/**
 * Deletes what the rule does not keep; `scores` by manifest key. Of each the manifest goes first: a crash in between
 * leaves files that nobody trusts, and that `collectGarbage` removes. Returns what was deleted.
 */
export async function applyRetention(
  store: ObjectStore,
  run: string,
  rule: RetentionRule,
  scores: ReadonlyMap<string, number> = new Map(),
  options: CallOptions = {},
): Promise<CheckpointRef[]> {
  const { checkpoints } = await findCheckpoints(store, run, options);
  const candidates: RetentionCandidate[] = [];
  for (const { ref, manifest } of checkpoints) {
    const score = scores.get(ref.manifest.key);
    const madeBy = await trainRequestOf(store, manifest, options);
    const needs = [...(manifest.base ? [manifest.base] : []), ...(madeBy ? checkpointsReadBy(madeBy) : [])];
    candidates.push({ step: ref.step, ref, needs, ...(score !== undefined && { score }) });
  }
  const pinned = [...rule.pinned, ...(await pinnedByOthers(store, run, options))];
  const doomed = checkpointsToDelete(candidates, { ...rule, pinned });
  const files = new Map(
    checkpoints.map(({ ref, manifest }) => [
      ref.manifest.key,
      Object.values(manifest.files).map(({ key }) => key),
    ]),
  );
  for (const { manifest } of doomed) {
    await store.remove([manifest.key], options);
    await store.remove(files.get(manifest.key)!, options);
  }
  return doomed;
}

const pins = jsonCodec<{ checkpoints: CheckpointRef[] }>(
  'what another run needs of a run',
  z.looseObject({ checkpoints: z.array(checkpointRef) }),
);

/** Keeps checkpoints of `run` from its retention, for good: the run `by` learns from them. */
export async function pinCheckpoints(
  store: ObjectStore,
  run: string,
  by: string,
  checkpoints: CheckpointRef[],
  options: CallOptions = {},
): Promise<void> {
  await store.putIfAbsent(pinsKey(run, by), pins, { checkpoints }, options);
}

async function pinnedByOthers(
  store: ObjectStore,
  run: string,
  options: CallOptions,
): Promise<CheckpointRef[]> {
  const keys = await store.list(pinsPrefix(run), options);
  const all = await Promise.all(keys.map(({ key }) => store.find(key, pins, options)));
  return all.flatMap((one) => one?.checkpoints ?? []);
}

/**
 * Removes what uploads and deletions that were cut off left behind: folders without a manifest whose step is below
 * that of the newest checkpoint. One at or above it may be in the middle of being written. Returns the folders.
 */
export async function collectGarbage(
  store: ObjectStore,
  run: string,
  options: CallOptions = {},
): Promise<string[]> {
  const { checkpoints, incomplete } = await findCheckpoints(store, run, options);
  const newest = checkpoints.at(-1)?.ref.step ?? 0;
  const garbage = incomplete.filter(({ hasManifest, step }) => !hasManifest && step < newest);
  for (const { keys } of garbage) await store.remove(keys, options);
  return garbage.map(({ folder }) => folder);
}
