import { RandomStream, normal, randomKey } from '../../../core/random.ts';
import type { CheckpointContent } from '../../../store/training/checkpoints.ts';
import type { ModelConfig, Weights } from '../../../core/model/config.ts';
import { newModelFiles } from '../../../engine/new-model-files.ts';
import { weightShapes } from '../../../core/model/config.ts';

export const smallConfig: ModelConfig = {
  vocabSize: 64,
  hiddenSize: 32,
  intermediateSize: 64,
  layers: 2,
  attentionHeads: 4,
  keyValueHeads: 2,
  headSize: 8,
  maxPositions: 128,
  rmsNormEpsilon: 1e-5,
  ropeTheta: 10000,
  tieEmbeddings: true,
};

export function randomWeights(config: ModelConfig, seed: number): Weights {
  return new Map(
    weightShapes(config).map(([name, shape]) => {
      const key = randomKey(seed, name);
      const size = shape.reduce((a, b) => a * b, 1);
      return [name, { shape, data: Float32Array.from({ length: size }, (_, i) => normal(key, i)) }];
    }),
  );
}

/** A checkpoint that is a function of its step. */
export function checkpointAt(
  step: number,
  config: ModelConfig = smallConfig,
  run = 'run-1',
): CheckpointContent {
  return {
    run,
    stage: 'rl-1',
    step,
    backend: 'none',
    createdBy: 'test',
    state: {
      config,
      weights: randomWeights(config, step),
      firstMoments: randomWeights(config, step + 1000),
      secondMoments: randomWeights(config, step + 2000),
      updates: step * 4,
    },
    files: newModelFiles(config, '{"version":"1.0"}', { bos: 1, eos: [2], pad: 0 }),
  };
}

export function randomBytes(length: number, seed: number): Uint8Array {
  const stream = new RandomStream('bytes', seed);
  return Uint8Array.from({ length }, () => stream.int(0, 255));
}

/** 1 MB of weights, 3 MB with the optimizer. */
export const largerConfig: ModelConfig = { ...smallConfig, hiddenSize: 128, intermediateSize: 256 };
