import type { TrainRequest, TrainResult } from '../core/requests.ts';
import type { Learner, TrainState } from '../engine/learner/contract.ts';
import { loadBatch } from './store/batches.ts';
import { loadCheckpoint, loadPolicy, saveCheckpoint } from './store/checkpoints.ts';
import { metricsKey } from './store/keys.ts';
import type { ObjectStore } from './store/object-store.ts';
import type { Durable } from './durable.ts';

export interface LearnerDependencies {
  store: ObjectStore;
  learner: Learner;
}

export type LearnerActivities = Durable<ReturnType<typeof createTraining>>;

const CREATED_BY = 'gradus 0.1.0';

export function createTraining({ store, learner }: LearnerDependencies) {
  // What the last steps made, so that a step need not read back what this process has just written.
  let newest: { manifest: string; state: TrainState; tokenizerJson: string } | undefined;
  return {
    /** One learner step: batch and parent in, a committed checkpoint out. A retry makes the same bytes again. */
    async trainStep(request: TrainRequest, signal: AbortSignal): Promise<TrainResult> {
      const start = Date.now();
      const [parent, batch, reference] = await Promise.all([
        newest?.manifest === request.parent.manifest.sha256
          ? newest
          : loadCheckpoint(store, request.parent, { signal }),
        loadBatch(store, request.batch, { signal }),
        request.reference ? loadPolicy(store, request.reference, { signal }) : undefined,
      ]);
      const before: TrainState = request.resetOptimizer
        ? { ...parent.state, firstMoments: new Map(), secondMoments: new Map(), updates: 0 }
        : parent.state;
      const { objective, optimizer, minibatch, epochs, seed } = request;
      const { state, metrics } = await learner.step(
        before,
        batch,
        { objective, optimizer, minibatch, epochs, seed },
        reference?.weights,
      );
      signal.throwIfAborted();
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
          tokenizerJson: parent.tokenizerJson,
        },
        { signal },
      );
      newest = {
        manifest: checkpoint.manifest.sha256,
        state,
        tokenizerJson: parent.tokenizerJson,
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
