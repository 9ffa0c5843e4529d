import type { Tensor } from '@tensorflow/tfjs';
import { weightShapes, type ModelConfig, type Weights } from '../model-config.ts';
import type { Backend } from './backend.ts';
import type { TrainState } from './contract.ts';
import { createAdam, type Adam } from './optimizer/adam.ts';

/** Weights as tensors in the order of `weightShapes`; the caller disposes them. */
export function uploadWeights(backend: Backend, config: ModelConfig, weights: Weights): Tensor[] {
  // The copy keeps the tensor from changing, or moving, with the caller's array.
  return weightShapes(config).map(([name, shape]) =>
    backend.tf.keep(backend.tf.tensor(weights.get(name)!.data.slice(), shape)),
  );
}

export function uploadState(backend: Backend, state: TrainState): Adam {
  const { tf } = backend;
  const moments = (given: Weights) =>
    given.size > 0
      ? uploadWeights(backend, state.config, given)
      : weightShapes(state.config).map(([, shape]) => tf.keep(tf.zeros(shape)));
  return createAdam(
    backend,
    uploadWeights(backend, state.config, state.weights),
    moments(state.firstMoments),
    moments(state.secondMoments),
  );
}

export function downloadState(config: ModelConfig, adam: Adam, updates: number): TrainState {
  const { first, second } = adam.moments();
  const state = {
    config,
    weights: download(config, adam.weights()),
    firstMoments: download(config, first),
    secondMoments: download(config, second),
    updates,
  };
  for (const tensor of [...first, ...second]) tensor.dispose();
  return state;
}

function download(config: ModelConfig, tensors: Tensor[]): Weights {
  return new Map(
    weightShapes(config).map(([name, shape], i) => {
      // A copy, because the addon's array is the tensor's own memory.
      return [name, { shape, data: (tensors[i]!.dataSync() as Float32Array).slice() }];
    }),
  );
}
