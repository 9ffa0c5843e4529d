import { normal, randomKey } from '../../../core/random.ts';
import { parameterCount, weightShapes, type ModelConfig, type Weights } from '../../../core/model/config.ts';

/** Grouped queries, and a head size that is not hiddenSize / attentionHeads. */
export const smallConfig: ModelConfig = {
  vocabSize: 97,
  hiddenSize: 48,
  intermediateSize: 80,
  layers: 3,
  attentionHeads: 4,
  keyValueHeads: 2,
  headSize: 32,
  maxPositions: 300,
  rmsNormEpsilon: 1e-5,
  ropeTheta: 10000,
  tieEmbeddings: true,
};

/** Weights large enough that logits spread over several nats. */
export function randomWeights(config: ModelConfig, seed = 1): Weights {
  const key = randomKey('weights', seed);
  let draws = 0;
  return new Map(
    weightShapes(config).map(([name, shape]) => {
      const length = shape.reduce((a, b) => a * b, 1);
      const draw = () => normal(key, draws++);
      const value =
        shape.length === 1 ? () => 1 + 0.1 * draw() : () => draw() / Math.sqrt(shape[1]!) + 0.05 * draw();
      return [name, { shape, data: Float32Array.from({ length }, value) }];
    }),
  );
}

/** The same for large models, in a fraction of the time: uniform weights, end to end in memory that threads share. */
export function largeWeights(config: ModelConfig): Float32Array {
  const flat = new Float32Array(new SharedArrayBuffer(4 * parameterCount(config)));
  // The linear congruential generator of Numerical Recipes.
  let state = 1;
  let at = 0;
  for (const [, shape] of weightShapes(config)) {
    const [middle, spread] = shape.length === 1 ? [1, 0.1] : [0, 2 / Math.sqrt(shape[1]!)];
    for (const end = at + shape.reduce((a, b) => a * b, 1); at < end; at++) {
      state = (Math.imul(state, 1664525) + 1013904223) | 0;
      flat[at] = middle + (spread * state) / 2 ** 31;
    }
  }
  return flat;
}

/** Weights that lie end to end, by name. */
export function named(config: ModelConfig, flat: Float32Array): Weights {
  let at = 0;
  return new Map(
    weightShapes(config).map(([name, shape]) => {
      const start = at;
      at += shape.reduce((a, b) => a * b, 1);
      return [name, { shape, data: flat.subarray(start, at) }];
    }),
  );
}

/** The weights end to end, as a backend takes them. */
export function flat(config: ModelConfig, weights: Weights): Float32Array {
  return Float32Array.from(weightShapes(config).flatMap(([name]) => [...weights.get(name)!.data]));
}
