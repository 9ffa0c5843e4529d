import { normal, randomKey } from '../../../../core/random.ts';
import { weightShapes, type ModelConfig, type Weights } from '../../../../engine/model-config.ts';

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

/** The weights end to end, as a backend takes them. */
export function flat(config: ModelConfig, weights: Weights): Float32Array {
  return Float32Array.from(weightShapes(config).flatMap(([name]) => [...weights.get(name)!.data]));
}
