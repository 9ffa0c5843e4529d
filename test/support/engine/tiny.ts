import { updatesOf } from '../../../activities/training/updates.ts';
import type { ClippedObjective } from '../../../core/algorithms/objective.ts';
import { RandomStream } from '../../../core/random.ts';
import type { UpdatePlan } from '../../../core/requests/batch.ts';
import type { TokenStream, TrainBatch, TrainSettings, TrainState } from '../../../engine/learner/contract.ts';
import { initialWeights } from '../../../engine/learner/initial-weights.ts';
import type { ModelConfig, Weights } from '../../../core/model/config.ts';

export const TINY: ModelConfig = {
  vocabSize: 19,
  hiddenSize: 16,
  intermediateSize: 24,
  layers: 2,
  attentionHeads: 4,
  keyValueHeads: 2,
  headSize: 4,
  maxPositions: 32,
  rmsNormEpsilon: 1e-5,
  ropeTheta: 10_000,
  tieEmbeddings: false,
};

export const GRPO: ClippedObjective = {
  kind: 'clipped',
  clipRatioLow: 0.2,
  clipRatioHigh: 0.28,
  beta: 0,
  aggregation: 'token',
  maxCompletionTokens: 30,
  temperature: 1,
  topK: 0,
  importanceCap: 0,
};

export function settings(
  objective: TrainSettings['objective'],
  more: Partial<TrainSettings> = {},
): TrainSettings {
  return {
    objective,
    optimizer: {
      learningRate: 1e-2,
      warmupUpdates: 0,
      beta1: 0.9,
      beta2: 0.999,
      epsilon: 1e-8,
      maxGradientNorm: 1,
    },
    ...more,
  };
}

/** Weights ten times larger than fresh ones, so that every part of the model matters. */
export function lively(config: ModelConfig, seed: number): Weights {
  const weights = initialWeights(config, seed);
  for (const { shape, data } of weights.values()) {
    if (shape.length > 1) data.forEach((value, i) => (data[i] = value * 10));
  }
  return weights;
}

export function freshState(config: ModelConfig = TINY, weights: Weights = lively(config, 1)): TrainState {
  return { config, weights, firstMoments: new Map(), secondMoments: new Map(), updates: 0 };
}

/** Ragged random sequences; the first two tokens of each, and now and then another, are not masked in. */
export function randomBatch(count: number, config: ModelConfig = TINY, seed = 3): TrainBatch {
  const random = new RandomStream(seed, 'batch');
  const lengths = Array.from({ length: count }, () => random.int(4, config.maxPositions));
  const total = lengths.reduce((sum, length) => sum + length, 0);
  const offsets = new Int32Array(count + 1);
  lengths.forEach((length, i) => (offsets[i + 1] = offsets[i]! + length));
  const starts = new Set(Array.from(offsets.slice(0, -1)).flatMap((start) => [start, start + 1]));
  return {
    tokens: Int32Array.from({ length: total }, () => random.int(0, config.vocabSize - 1)),
    offsets,
    mask: Float32Array.from({ length: total }, (_, i) => (starts.has(i) || random.uniform() < 0.2 ? 0 : 1)),
    streams: {
      advantages: Float32Array.from({ length: total }, () => random.uniform() * 2 - 1),
      samplerLogprobs: Float32Array.from({ length: total }, () => -3 + random.uniform()),
    },
    sequences: {},
    updates: updatesOf(count, { minibatch: 64, epochs: 1, seed: 7 }),
  };
}

/** The batch in other updates. */
export const inUpdates = (batch: TrainBatch, plan: Partial<UpdatePlan>): TrainBatch => ({
  ...batch,
  updates: updatesOf(batch.offsets.length - 1, { minibatch: 64, epochs: 1, seed: 7, ...plan }),
});

/** The batch with other numbers for its tokens. */
export const withStreams = (
  batch: TrainBatch,
  streams: Partial<Record<TokenStream, Float32Array>>,
): TrainBatch => ({ ...batch, streams: { ...batch.streams, ...streams } });

export function bytes(weights: Weights): Buffer {
  return Buffer.concat(
    [...weights.values()].map(({ data }) => Buffer.from(data.buffer, data.byteOffset, data.byteLength)),
  );
}

export function largestDifference(a: Weights, b: Weights): number {
  let largest = 0;
  for (const [name, { data }] of a) {
    const other = b.get(name)!.data;
    data.forEach((value, i) => (largest = Math.max(largest, Math.abs(value - other[i]!))));
  }
  return largest;
}
