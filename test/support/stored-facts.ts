import type { CheckpointRef } from '../../core/refs.ts';
import { readSteps } from '../../store/training/step-facts.ts';
import type { ObjectStore } from '../../store/objects/object-store.ts';

/**
 * What the steps of a run have left, as text, a line each: without what clocks and machines have a part in, and without
 * the run's name, which is in the keys of its checkpoints. Of two executions of one spec it is the same.
 */
export async function storedFacts(store: ObjectStore, run: string): Promise<string[]> {
  const steps = await readSteps(store, run);
  const nameless = ({ weights, step }: CheckpointRef) => ({ weights, step });
  return steps.map((step) =>
    JSON.stringify({ ...step, checkpoint: nameless(step.checkpoint), circumstances: null }),
  );
}
