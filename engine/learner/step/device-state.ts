import type { Tensor } from '@tensorflow/tfjs';
import type { ModelConfig, Weights } from '../../../core/model/config.ts';
import { weightShapes } from '../../../core/model/config.ts';
import { pageAligned } from '../../page-aligned.ts';
import type { TensorflowBackend } from '../tensorflow/backend.ts';
import type { CriticState, TrainState } from '../contract.ts';
import { criticShapes } from '../critic.ts';
import { createAdam, type Adam } from '../optimizer/adam.ts';
import { parameterShapes } from '../../lora/adapter-shapes.ts';

type Shapes = readonly (readonly [name: string, shape: readonly number[]])[];

/** What a learner holds on its device: parameters in the order of `parameterShapes`. */
export interface DeviceState {
  /** Of an adapter's base; empty in a full fine-tune. */
  frozen: Tensor[];
  /** What is trained, with its moments. */
  adam: Adam;
  /** A critic with its moments, from the first step on that trains it. */
  critic?: Adam | undefined;
  dispose(): void;
}

/** Weights as tensors in the order of `weightShapes`; the caller disposes them. */
export const uploadWeights = (backend: TensorflowBackend, config: ModelConfig, weights: Weights): Tensor[] =>
  uploadFrozen(backend, weightShapes(config), weights);

/** Where the device is this machine's processor the tensors are the caller's own arrays if they are aligned, which never change. */
export const uploadFrozen = ({ tf }: TensorflowBackend, shapes: Shapes, weights: Weights): Tensor[] =>
  shapes.map(([name, shape]) => tf.keep(tf.tensor(weights.get(name)!.data, [...shape])));

/** Of what an update changes in place, or a caller might: a copy. */
const uploadTrained = ({ tf }: TensorflowBackend, shapes: Shapes, weights: Weights): Tensor[] =>
  shapes.map(([name, shape]) => {
    const { data } = weights.get(name)!;
    const copy = new Float32Array(pageAligned(data.byteLength));
    copy.set(data);
    return tf.keep(tf.tensor(copy, [...shape]));
  });

const uploadMoments = (backend: TensorflowBackend, shapes: Shapes, given: Weights): Tensor[] =>
  given.size > 0
    ? uploadTrained(backend, shapes, given)
    : shapes.map(([, shape]) => backend.tf.keep(backend.tf.zeros([...shape])));

export const uploadCritic = (backend: TensorflowBackend, config: ModelConfig, critic: CriticState): Adam => {
  const shapes = criticShapes(config);
  return createAdam(
    backend,
    uploadTrained(backend, shapes, critic.weights),
    uploadMoments(backend, shapes, critic.firstMoments),
    uploadMoments(backend, shapes, critic.secondMoments),
  );
};

export function uploadState(backend: TensorflowBackend, state: TrainState): DeviceState {
  const { config, adapter } = state;
  const shapes = parameterShapes({ config, lora: adapter?.lora });
  const moments = (given: Weights) => uploadMoments(backend, shapes.trained, given);
  const frozen = uploadFrozen(backend, shapes.frozen, state.weights);
  const trained = uploadTrained(backend, shapes.trained, adapter?.weights ?? state.weights);
  const adam = createAdam(backend, trained, moments(state.firstMoments), moments(state.secondMoments));
  return {
    frozen,
    adam,
    dispose() {
      adam.dispose();
      this.critic?.dispose();
      frozen.forEach((tensor) => tensor.dispose());
    },
  };
}

/** What the policy has become, with its moments or without them. */
export function downloadPolicy(
  { config, weights, adapter }: TrainState,
  { adam }: DeviceState,
  withoutMoments: boolean,
): Pick<TrainState, 'weights' | 'adapter' | keyof Moments> {
  const { trained } = parameterShapes({ config, lora: adapter?.lora });
  const { learnt: trainedWeights, ...moments } = downloadTrained(trained, adam, withoutMoments);
  return {
    ...(adapter
      ? { weights, adapter: { ...adapter, weights: trainedWeights } }
      : { weights: trainedWeights }),
    ...moments,
  };
}

/** What the critic has become. */
export function downloadCritic(
  config: ModelConfig,
  critic: Adam,
  updates: number,
  withoutMoments: boolean,
): CriticState {
  const { learnt: trainedWeights, ...moments } = downloadTrained(
    criticShapes(config),
    critic,
    withoutMoments,
  );
  return { weights: trainedWeights, ...moments, updates };
}

type Moments = Pick<TrainState, 'firstMoments' | 'secondMoments' | 'withoutMoments'>;

function downloadTrained(shapes: Shapes, adam: Adam, withoutMoments: boolean): Moments & { learnt: Weights } {
  const trainedWeights = download(shapes, adam.weights());
  if (withoutMoments)
    return { learnt: trainedWeights, firstMoments: new Map(), secondMoments: new Map(), withoutMoments };
  const { first, second } = adam.moments();
  const moments = { firstMoments: download(shapes, first), secondMoments: download(shapes, second) };
  for (const tensor of [...first, ...second]) tensor.dispose();
  return { learnt: trainedWeights, ...moments };
}

function download(shapes: Shapes, tensors: Tensor[]): Weights {
  return new Map(
    shapes.map(([name, shape], i) => {
      // A copy, because the addon's array is the tensor's own memory.
      return [name, { shape, data: (tensors[i]!.dataSync() as Float32Array).slice() }];
    }),
  );
}
