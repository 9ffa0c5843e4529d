import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { normal, randomKey } from '../../core/random.ts';
import { writeHfWeights } from '../../engine/hf-weights.ts';
import { parameterCount, weightShapes } from '../../core/model/config.ts';
import type { ModelConfig, Weights } from '../../core/model/config.ts';
import { newModelFiles } from '../../engine/new-model-files.ts';

const common = { maxPositions: 512, rmsNormEpsilon: 1e-6, ropeTheta: 10_000, tieEmbeddings: false };

/** The sizes that are compared. */
export const MODELS: Record<'1M' | '30M', ModelConfig> = {
  '1M': {
    ...common,
    vocabSize: 512,
    hiddenSize: 128,
    intermediateSize: 384,
    layers: 4,
    attentionHeads: 4,
    keyValueHeads: 2,
    headSize: 32,
  },
  '30M': {
    ...common,
    vocabSize: 8192,
    hiddenSize: 512,
    intermediateSize: 1280,
    layers: 8,
    attentionHeads: 8,
    keyValueHeads: 4,
    headSize: 64,
  },
};
export type ModelSize = keyof typeof MODELS;

/** Large enough that the likeliest token is the likeliest by far more than rounding. */
export function randomWeights(config: ModelConfig): Weights {
  const key = randomKey('bench', parameterCount(config));
  let draws = 0;
  return new Map(
    weightShapes(config).map(([name, shape]) => {
      const length = shape.reduce((a, b) => a * b, 1);
      const scale = 1 / Math.sqrt(shape[1] ?? 1);
      const value = () => (shape.length === 1 ? 1 : scale * normal(key, draws++));
      return [name, { shape, data: Float32Array.from({ length }, value) }];
    }),
  );
}

/** Gives `use` the model as a Hugging Face folder that anchors load, and removes it afterwards. */
export async function withFolder<T>(
  config: ModelConfig,
  weights: Weights,
  use: (folder: string) => Promise<T>,
): Promise<T> {
  const folder = await mkdtemp(path.join(tmpdir(), 'gradus-bench-'));
  try {
    // Anchors are given token ids: nobody reads the tokenizer.
    for (const [name, bytes] of newModelFiles(config, '{}')) await writeFile(path.join(folder, name), bytes);
    await writeHfWeights(folder, config, weights, { dtype: 'F32', maxShardBytes: Infinity });
    return await use(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
