import type { Tensor } from '@tensorflow/tfjs';
import type { ModelConfig, Weights } from '../model-config.ts';
import { weightShapes } from '../model-config.ts';
import type { Backend } from './backend.ts';
import type { TrainState } from './contract.ts';
import { createAdam, type Adam } from './optimizer/adam.ts';
import { parameterShapes } from '../lora/adapter-shapes.ts';

type Shapes = readonly (readonly [name: string, shape: readonly number[]])[];

/** What a learner holds on its device: parameters in the order of `parameterShapes`. */
export interface DeviceState {
  /** Of an adapter's base; empty in a full fine-tune. */
  frozen: Tensor[];
  /** What is trained, with its moments. */
  adam: Adam;
  dispose(): void;
}

/** Weights as tensors in the order of `weightShapes`; the caller disposes them. */
export const uploadWeights = (backend: Backend, config: ModelConfig, weights: Weights): Tensor[] =>
  uploadFrozen(backend, weightShapes(config), weights);

/** Where the device is this machine's processor the tensors are the caller's own arrays, which never change. */
const uploadFrozen = ({ tf }: Backend, shapes: Shapes, weights: Weights): Tensor[] =>
  shapes.map(([name, shape]) => tf.keep(tf.tensor(weights.get(name)!.data, [...shape])));

/** Of what an update changes in place, or a caller might: a copy. */
const uploadTrained = ({ tf }: Backend, shapes: Shapes, weights: Weights): Tensor[] =>
  shapes.map(([name, shape]) => tf.keep(tf.tensor(weights.get(name)!.data.slice(), [...shape])));

export function uploadState(backend: Backend, state: TrainState): DeviceState {
  const { tf } = backend;
  const { config, adapter } = state;
  const shapes = parameterShapes({ config, lora: adapter?.lora });
  const moments = (given: Weights) =>
    given.size > 0
      ? uploadTrained(backend, shapes.trained, given)
      : shapes.trained.map(([, shape]) => tf.keep(tf.zeros(shape)));
  const frozen = uploadFrozen(backend, shapes.frozen, state.weights);
  const trained = uploadTrained(backend, shapes.trained, adapter?.weights ?? state.weights);
  const adam = createAdam(backend, trained, moments(state.firstMoments), moments(state.secondMoments));
  return {
    frozen,
    adam,
    dispose: () => {
      adam.dispose();
      frozen.forEach((tensor) => tensor.dispose());
    },
  };
}

/** The state that comes after `parent`. */
export function downloadState(parent: TrainState, { adam }: DeviceState, updates: number): TrainState {
  const { config, adapter } = parent;
  const { trained } = parameterShapes({ config, lora: adapter?.lora });
  const { first, second } = adam.moments();
  const learnt = download(trained, adam.weights());
  const state = {
    config,
    ...(adapter
      ? { weights: parent.weights, adapter: { ...adapter, weights: learnt } }
      : { weights: learnt }),
    firstMoments: download(trained, first),
    secondMoments: download(trained, second),
    updates,
  };
  for (const tensor of [...first, ...second]) tensor.dispose();
  return state;
}

function download(shapes: Shapes, tensors: Tensor[]): Weights {
  return new Map(
    shapes.map(([name, shape], i) => {
      // A copy, because the addon's array is the tensor's own memory.
      return [name, { shape, data: (tensors[i]!.dataSync() as Float32Array).slice() }];
    }),
  );
}
