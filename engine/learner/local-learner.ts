import { GradusError } from '../../core/errors.ts';
import { loadBackend, type BackendKind } from './backend.ts';
import { checkBatch, checkSettings, checkState, checkWeights } from './check-arguments.ts';
import { DEFAULT_COMPUTE, type Learner, type TrainState } from './contract.ts';
import { downloadState, uploadState, uploadWeights, type DeviceState } from './device-state.ts';
import { createTracedRunner } from './graph/traced-runner.ts';
import { lossOf } from './losses/index.ts';
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
  let last: { state: TrainState; device: DeviceState } | undefined;
  let queue: Promise<unknown> = Promise.resolve();

  const forget = () => {
    last?.device.dispose();
    last = undefined;
  };
  const step: Learner['step'] = async (parent, batch, settings, others, onProgress, signal) => {
    signal?.throwIfAborted();
    const { config } = parent;
    const { reference } = others ?? {};
    const loss = lossOf(settings.objective);
    const needsReference = loss.reads(true).includes('reference') && !batch.streams.reference;
    checkSettings(settings, reference !== undefined || batch.streams.reference !== undefined);
    const { precision } = settings.compute ?? DEFAULT_COMPUTE;
    if (!runner.precisions.includes(precision)) {
      throw new GradusError(
        'learner',
        'precision',
        `${backend.name} has no ${precision}: set learner.precision to ${runner.precisions.join(' or ')}, ` +
          'or run `npm run setup`, which builds the TensorFlow backend',
      );
    }
    checkBatch(batch, config, loss);
    if (reference && needsReference) checkWeights(reference, config, 'reference');
    if (last?.state !== parent) checkState(parent);

    if (last?.state !== parent) forget();
    // An update changes what the device holds in place: it is this step's alone until it ends well.
    const device = last?.device ?? uploadState(backend, parent);
    last = undefined;
    const referenceTensors =
      reference && needsReference ? uploadWeights(backend, config, reference) : undefined;
    try {
      const metrics = await trainStep(backend, runner, {
        parent,
        device,
        batch,
        settings,
        reference: referenceTensors,
        onProgress,
      });
      const state = downloadState(parent, device, parent.updates + metrics.updates);
      last = { state, device };
      return { state, metrics };
    } catch (error) {
      device.dispose();
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
