import { randomKey } from '../core/random.ts';
import type { CheckpointRef } from '../core/refs.ts';
import type { TrainRequest, TrainResult } from '../core/requests.ts';
import type { Learner, TrainState } from '../engine/learner/contract.ts';
import type { Weights } from '../engine/model-config.ts';
import { loadBatch } from './store/batches.ts';
import { loadCheckpoint, loadPolicy, saveCheckpoint } from './store/checkpoints.ts';
import type { ModelFiles } from './store/checkpoints.ts';
import { metricsKey } from './store/keys.ts';
import { CREATED_BY } from './store/manifest.ts';
import type { ObjectStore } from './store/object-store.ts';
import type { Durable } from './durable.ts';

export interface LearnerDependencies {
  store: ObjectStore;
  learner: Learner;
}

export type LearnerActivities = Durable<ReturnType<typeof createTraining>>;

export function createTraining({ store, learner }: LearnerDependencies) {
  // What the last steps made, so that a step need not read back what this process has just written.
  let newest: { manifest: string; state: TrainState; files: ModelFiles } | undefined;
  // The same object again and again, so that the learner knows it by identity and need not be sent it.
  let lastReference: { manifest: string; weights: Weights } | undefined;
  const referenceWeights = async (ref: CheckpointRef, signal: AbortSignal): Promise<Weights> => {
    if (lastReference?.manifest !== ref.manifest.sha256) {
      const { weights } = await loadPolicy(store, ref, { signal });
      lastReference = { manifest: ref.manifest.sha256, weights };
    }
    return lastReference.weights;
  };
  return {
    /** One learner step: batch and parent in, a committed checkpoint out. A retry makes the same bytes again. */
    async trainStep(request: TrainRequest, signal: AbortSignal): Promise<TrainResult> {
      const start = Date.now();
      const [parent, batch, reference] = await Promise.all([
        newest?.manifest === request.parent.manifest.sha256
          ? newest
          : loadCheckpoint(store, request.parent, { signal }),
        loadBatch(store, request.batch, { signal }),
        request.reference ? referenceWeights(request.reference, signal) : undefined,
      ]);
      const before: TrainState = request.resetOptimizer
        ? { ...parent.state, firstMoments: new Map(), secondMoments: new Map(), updates: 0 }
        : parent.state;
      const { objective, optimizer, minibatch, epochs, seed } = request;
      const { state, metrics } = await learner.step(
        before,
        batch,
        { objective, optimizer, minibatch, epochs, seed: randomKey(seed, request.stage, request.step).k0 },
        reference,
        undefined,
        signal,
      );
      const checkpoint = await saveCheckpoint(
        store,
        {
          run: request.run,
          stage: request.stage,
          step: request.step,
          parent: request.parent,
          backend: learner.backend,
          createdBy: CREATED_BY,
          state,
          files: parent.files,
        },
        { signal },
      );
      newest = {
        manifest: checkpoint.manifest.sha256,
        state,
        files: parent.files,
      };
      const key = metricsKey(request.run, request.stage, request.stageStep);
      await store.putJson(key, { stage: request.stage, step: request.step, metrics }, { signal });
      return {
        checkpoint,
        metrics,
        backend: learner.backend,
        spans: [{ part: 'learner', start, end: Date.now() }],
      };
    },
  };
}
