import type { RetentionRequest } from '../../core/requests/run.ts';
import { checkpointsPrefix } from '../../store/keys.ts';
import type { ObjectStore } from '../../store/objects/object-store.ts';
import { applyRetention as retain, collectGarbage } from '../../store/training/retention.ts';

/** Removes the checkpoints that the spec does not keep, and what none of those left needs. */
export async function retainCheckpoints(
  store: ObjectStore,
  request: RetentionRequest,
  signal: AbortSignal,
): Promise<void> {
  const { run, retention, pinned, scores } = request;
  const byKey = new Map(scores.map(({ checkpoint, score }) => [checkpoint.manifest.key, score]));
  // Where the run is now is pinned, and what it began with may be another run's.
  const own = pinned.filter(({ manifest }) => manifest.key.startsWith(checkpointsPrefix(run)));
  const now = own.length > 0 && { upTo: Math.max(...own.map(({ step }) => step)) };
  await retain(store, run, { ...retention, pinned, ...now }, byKey, { signal });
  await collectGarbage(store, run, { signal });
}
