import type { RetentionRequest } from '../../core/requests.ts';
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
  await retain(store, run, { ...retention, pinned }, byKey, { signal });
  await collectGarbage(store, run, { signal });
}
