import { loadBackend, type BackendKind } from './backend.ts';
import { checkBatch, checkSettings, checkState, checkWeights } from './check-arguments.ts';
import type { Learner, TrainState } from './contract.ts';
import { downloadState, uploadState, uploadWeights } from './device-state.ts';
import { createTracedRunner } from './graph/traced-runner.ts';
import type { Adam } from './optimizer/adam.ts';
import { eagerRunner } from './runner.ts';
import { trainStep } from './train-step.ts';

export interface LocalLearnerOptions {
  backend?: BackendKind;
  /** `traced` (the default where libtensorflow runs) is some two times faster; `eager` works everywhere. */
  mode?: 'traced' | 'eager';
}

/**
 * A learner in this process. Its kernels block the event loop: a service wants `createLearner`. One step at a time
 * runs; others wait. States are never to be changed by the caller: the last one is kept on the device.
 */
export async function createLocalLearner(options: LocalLearnerOptions = {}): Promise<Learner> {
  const backend = await loadBackend(options.backend);
  const { tf, native } = backend;
  const runner = native && options.mode !== 'eager' ? createTracedRunner(tf, native) : eagerRunner;
  let last: { state: TrainState; adam: Adam } | undefined;
  let queue: Promise<unknown> = Promise.resolve();

  const forget = () => {
    last?.adam.dispose();
    last = undefined;
  };
  const step: Learner['step'] = async (parent, batch, settings, reference, onProgress, signal) => {
    signal?.throwIfAborted();
    const { config } = parent;
    const needsReference = settings.objective.kind === 'grpo' && settings.objective.beta > 0;
    checkSettings(settings, reference);
    checkBatch(batch, config);
    if (reference && needsReference) checkWeights(reference, config, 'reference');
    if (last?.state !== parent) checkState(parent);

    if (last?.state !== parent) forget();
    // An update changes what the device holds in place: it is this step's alone until it ends well.
    const adam = last?.adam ?? uploadState(backend, parent);
    last = undefined;
    const referenceTensors =
      reference && needsReference ? uploadWeights(backend, config, reference) : undefined;
    try {
      const { updates } = parent;
      const metrics = await trainStep(backend, runner, {
        config,
        adam,
        updates,
        batch,
        settings,
        reference: referenceTensors,
        onProgress,
      });
      const state = downloadState(config, adam, updates + metrics.updates);
      last = { state, adam };
      return { state, metrics };
    } catch (error) {
      adam.dispose();
      throw error;
    } finally {
      referenceTensors?.forEach((tensor) => tensor.dispose());
    }
  };
  return {
    backend: backend.name,
    step: (...args) => {
      const result = queue.then(() => step(...args));
      queue = result.catch(() => undefined);
      return result;
    },
    close: async () => {
      await queue;
      forget();
      runner.close();
    },
  };
}
