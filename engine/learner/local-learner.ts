import type { Tensor } from '@tensorflow/tfjs';
import { GradusError } from '../../core/errors.ts';
import { commandLine } from '../../core/installation.ts';
import { loadTensorflowBackend, type TensorflowBackendKind } from './tensorflow/backend.ts';
import {
  checkBatch,
  checkCritic,
  checkSequences,
  checkSettings,
  checkState,
  checkTemperature,
  checkWeights,
} from './step/check-arguments.ts';
import { DEFAULT_COMPUTE } from './contract.ts';
import type { ComputeSettings, Learner, OtherModels, TrainState } from './contract.ts';
import { beginCritic, withoutCritic } from './critic.ts';
import {
  downloadCritic,
  downloadPolicy,
  uploadCritic,
  uploadState,
  uploadWeights,
  type DeviceState,
} from './step/device-state.ts';
import { createTracedRunner } from './tensorflow/graph/traced-runner.ts';
import { lossOf } from './losses/index.ts';
import { eagerRunner } from './tensorflow/runner.ts';
import { scoreTokens } from './step/score.ts';
import { trainStep } from './step/train-step.ts';

const momentsGone = (): GradusError =>
  new GradusError(
    'learner',
    'moments-gone',
    "the parent's moments stayed with a learner that has ended or has made another step since: make the parent's step again",
    { retryable: true },
  );

export interface LocalLearnerOptions {
  backend?: TensorflowBackendKind;
  /** `traced` (the default where libtensorflow runs) is some two times faster; `eager` works everywhere. */
  mode?: 'traced' | 'eager';
}

/**
 * A learner in this process. Its kernels block the event loop: a service wants `createLearner`. One step or scoring at a
 * time runs; others wait. States are never to be changed by the caller: the last one is kept on the device.
 */
export async function createLocalLearner(options: LocalLearnerOptions = {}): Promise<Learner> {
  const backend = await loadTensorflowBackend(options.backend);
  const { tf, native } = backend;
  const runner = native && options.mode !== 'eager' ? createTracedRunner(tf, native) : eagerRunner;
  let last: { state: TrainState; device: DeviceState } | undefined;
  let queue: Promise<unknown> = Promise.resolve();

  const forget = () => {
    last?.device.dispose();
    last = undefined;
  };
  const inTurn = <T>(work: () => Promise<T>): Promise<T> => {
    const result = queue.then(work);
    queue = result.catch(() => undefined);
    return result;
  };
  const checkPrecision = ({ precision }: ComputeSettings): void => {
    if (runner.precisions.includes(precision)) return;
    throw new GradusError(
      'learner',
      'precision',
      `${backend.name} has no ${precision}: set learner.precision to ${runner.precisions.join(' or ')}, ` +
        `or run \`${commandLine('setup')}\`, which builds the TensorFlow backend`,
    );
  };

  const step: Learner['step'] = async (given, batch, settings, others = {}, onProgress, signal) => {
    signal?.throwIfAborted();
    const { config } = given;
    const loss = settings.objective && lossOf(settings.objective);
    const { reference, teachers = [] } = others;
    const { reference: scored } = batch.streams;
    checkSettings(settings, reference !== undefined || scored !== undefined, teachers, config);
    checkPrecision(settings.compute ?? DEFAULT_COMPUTE);
    checkBatch(batch, config, loss, settings.critic);
    const needsReference = loss?.reads(true).includes('reference') === true && !scored;
    if (reference && needsReference) checkWeights(reference, config, 'reference');
    if (last?.state !== given) {
      checkState(given);
      forget();
    }
    const parent = settings.critic
      ? { ...given, critic: given.critic ?? beginCritic(given) }
      : withoutCritic(given);
    if (!last && (parent.withoutMoments || parent.critic?.withoutMoments)) throw momentsGone();
    // An update changes what the device holds in place: it is this step's alone until it ends well.
    const device = last?.device ?? uploadState(backend, parent);
    last = undefined;
    if (parent.critic) {
      device.critic ??= uploadCritic(backend, config, parent.critic);
    } else {
      device.critic?.dispose();
      delete device.critic;
    }
    const beside = uploadOthers(parent, {
      reference: needsReference ? reference : undefined,
      teachers: settings.objective?.kind === 'distill' ? teachers : [],
    });
    try {
      const metrics = await trainStep(backend, runner, {
        parent,
        device,
        batch,
        settings,
        others: beside,
        onProgress,
      });
      const { updates } = metrics;
      const { withoutMoments = false } = settings;
      // Nothing has changed in a policy beside which the critic alone was trained, but its moments may be wanted now.
      const moved = settings.objective !== null || (parent.withoutMoments && !withoutMoments);
      const policy = moved ? downloadPolicy(parent, device, withoutMoments) : parent;
      const { weights, adapter, firstMoments, secondMoments } = policy;
      const state: TrainState = {
        config,
        weights,
        ...(adapter && { adapter }),
        firstMoments,
        secondMoments,
        ...(policy.withoutMoments && { withoutMoments: true }),
        updates: parent.updates + (settings.objective ? updates : 0),
        ...(parent.critic && {
          critic: downloadCritic(config, device.critic!, parent.critic.updates + updates, withoutMoments),
        }),
      };
      last = { state, device };
      return { state, metrics };
    } catch (error) {
      device.dispose();
      throw error;
    } finally {
      beside.reference?.forEach((tensor) => tensor.dispose());
      beside.teachers.forEach(({ tensors }) => tensors.forEach((tensor) => tensor.dispose()));
    }
  };

  const uploadOthers = ({ config }: TrainState, { reference, teachers = [] }: OtherModels) => ({
    reference: reference && uploadWeights(backend, config, reference),
    teachers: teachers.map((teacher): { config: typeof config; tensors: Tensor[] } => ({
      config: teacher.config,
      tensors: uploadWeights(backend, teacher.config, teacher.weights),
    })),
  });

  const score: Learner['score'] = async (model, batch, what, compute = DEFAULT_COMPUTE, signal) => {
    signal?.throwIfAborted();
    const { config, weights, critic } = model;
    const { logprobs } = what;
    if (logprobs) checkTemperature(logprobs.temperature);
    checkPrecision(compute);
    checkSequences(batch, config, logprobs?.topK ?? 0);
    checkWeights(weights, config, 'weights');
    if (critic) checkCritic(critic, config);
    return scoreTokens(backend, runner, model, batch, what, compute);
  };

  return {
    backend: backend.name,
    step: (...args) => inTurn(() => step(...args)),
    score: (...args) => inTurn(() => score(...args)),
    close: async () => {
      await queue;
      forget();
      runner.close();
    },
  };
}
