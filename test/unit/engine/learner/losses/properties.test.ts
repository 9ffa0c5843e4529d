import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Objective } from '../../../../../core/algorithms/objective.ts';
import { RandomStream } from '../../../../../core/random.ts';
import type { TrainBatch } from '../../../../../engine/learner/contract.ts';
import { lossOf } from '../../../../../engine/learner/losses/index.ts';
import type { Weights } from '../../../../../core/model/config.ts';
import { referenceLogprobs } from '../reference-decoder.ts';
import { learnerOfFile } from '../learner-of-file.ts';
import {
  bytes,
  freshState,
  GRPO,
  largestDifference,
  lively,
  randomBatch,
  settings,
  TINY,
  withStreams,
} from '../../../../support/engine/tiny.ts';

const learner = await learnerOfFile('eager');

const mean = { aggregation: 'token', maxCompletionTokens: 30 } as const;
const from = { temperature: 0.9, topK: 0 };
const OBJECTIVES: Objective[] = [
  { kind: 'supervised' },
  { ...GRPO, importanceCap: 2, beta: 0.1, entropyBonus: 0.05, aggregation: 'sequence' },
  { ...GRPO, importanceCap: 1.5, importanceRule: 'mask' },
  { ...GRPO, importanceCap: 5, importanceFloor: 0.5, importanceRule: 'mask' },
  { ...GRPO, importanceCap: 2, importanceRule: 'difference', differenceLow: 0.01, differenceHigh: 0.01 },
  { kind: 'gspo', ...from, clipRatioLow: 0.05, clipRatioHigh: 0.08 },
  { kind: 'cispo', ...from, ...mean, clipRatioHigh: 0.2 },
  { kind: 'reinforce', ...from, ...mean, importanceCap: 2, entropyBonus: 0.01 },
  { kind: 'dpo', ...from, variant: 'sigmoid', beta: 0.3, labelSmoothing: 0.1 },
  { kind: 'dpo', ...from, variant: 'ipo', beta: 0.5, labelSmoothing: 0 },
  { kind: 'kto', ...from, beta: 0.2, desirableWeight: 1, undesirableWeight: 1.33 },
  {
    kind: 'distill',
    ...mean,
    divergence: { kind: 'jsd', beta: 0.4 },
    temperature: 0.9,
    teacherWeights: [0.3, 0.7],
  },
];
const named = OBJECTIVES.map((objective): [string, Objective] => [JSON.stringify(objective), objective]);
const others = {
  reference: lively(TINY, 2),
  teachers: [4, 5].map((seed) => ({ config: TINY, weights: lively(TINY, seed) })),
};

/** Two pairs, of other lengths and masks with every seed, in two updates that both see them all. */
function pairedBatch(seed: number): TrainBatch {
  const batch = randomBatch(6, TINY, seed);
  return {
    ...batch,
    sequences: { pair: Float32Array.of(0, 1, 0, 1, -1, -1), label: Float32Array.of(1, -1, -1, 1, 0, 0) },
    updates: [Int32Array.of(0, 1, 2, 3, 4, 5), Int32Array.of(5, 2, 0, 4, 3, 1)],
  };
}
const step = (batch: TrainBatch, objective: Objective, weights?: Weights) =>
  learner.step(freshState(TINY, weights), batch, settings(objective), others);

describe.each(named)('%s', (_, objective) => {
  it('reads nothing where the mask is 0', async () => {
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 1000 }), async (seed) => {
        const batch = pairedBatch(seed);
        const noise = new RandomStream(seed, 'noise');
        const streams = Object.fromEntries(
          Object.entries(batch.streams).map(([name, values]) => [
            name,
            values.map((value, i) => (batch.mask[i] === 1 ? value : 200 * noise.uniform() - 100)),
          ]),
        );
        const a = await step(batch, objective);
        const b = await step({ ...batch, streams }, objective);
        expect(bytes(b.state.weights).equals(bytes(a.state.weights))).toBe(true);
        expect({ ...b.metrics, seconds: 0 }).toEqual({ ...a.metrics, seconds: 0 });
      }),
      { numRuns: 4 },
    );
  });

  it('teaches the same whatever order the sequences lie in', async () => {
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 1000 }), async (seed) => {
        const batch = pairedBatch(seed);
        const order = new RandomStream(seed, 'order').shuffle([0, 1, 2, 3, 4, 5]);
        const a = await step(batch, objective);
        const b = await step(inOrder(batch, order), objective);
        // Moments, for Adam's division by √v makes a move of what is all but 0.
        expect(largestDifference(a.state.firstMoments, b.state.firstMoments)).toBeLessThan(1e-5);
        // Relative, for sums in another order differ by float32 of what is summed: ipo's loss is in the hundreds.
        expect(Math.abs(b.metrics.loss! - a.metrics.loss!)).toBeLessThan(
          1e-5 * Math.max(1, Math.abs(a.metrics.loss!)),
        );
      }),
      { numRuns: 4 },
    );
  });

  it('refuses log-probs that are not finite before they reach the weights', async () => {
    for (const broken of [NaN, Infinity]) {
      const weights = lively(TINY, 1);
      weights.get('lm_head.weight')!.data[0] = broken;
      await expect(step(pairedBatch(3), objective, weights)).rejects.toMatchObject({
        boundary: 'learner',
        type: 'diverged',
        message: expect.stringContaining('log-prob of token') as string,
      });
    }
  });

  it('is finite and moves the weights', async () => {
    const { state, metrics } = await step(pairedBatch(5), objective);
    expect(metrics.gradientNorm).toBeGreaterThan(0);
    expect([...state.weights.values()].every(({ data }) => data.every(Number.isFinite))).toBe(true);
  });
});

/** Sequence i of the result is sequence `order[i]` of the batch. */
function inOrder(batch: TrainBatch, order: readonly number[]): TrainBatch {
  const spans = order.map((i): [number, number] => [batch.offsets[i]!, batch.offsets[i + 1]!]);
  const offsets = new Int32Array(order.length + 1);
  spans.forEach(([start, end], i) => (offsets[i + 1] = offsets[i]! + end - start));
  const real = (values: Float32Array) =>
    Float32Array.from(spans.flatMap(([start, end]) => [...values.subarray(start, end)]));
  const mapped = (all: object, map: (values: Float32Array) => Float32Array) =>
    Object.fromEntries(Object.entries(all).map(([name, values]) => [name, map(values as Float32Array)]));
  return {
    tokens: Int32Array.from(spans.flatMap(([start, end]) => [...batch.tokens.subarray(start, end)])),
    offsets,
    mask: real(batch.mask),
    streams: mapped(batch.streams, real),
    sequences: mapped(batch.sequences, (values) => Float32Array.from(order, (i) => values[i]!)),
    updates: batch.updates.map((update) => update.map((sequence) => order.indexOf(sequence))),
  };
}

/** Adam that divides by a constant: gradient descent by 1e-4 of the gradient. */
const descent = {
  learningRate: 1e2,
  warmupUpdates: 0,
  beta1: 0,
  beta2: 0,
  epsilon: 1e6,
  maxGradientNorm: 0,
};

it.each(named.filter(([, objective]) => lossOf(objective).kind === 'coupled'))(
  'the gradient is that of finite differences in float64 through the whole model: %s',
  async (_, objective) => {
    const drawn = pairedBatch(11);
    // One advantage a sequence: with several GSPO stops the gradient between its tokens.
    const advantages = drawn.mask.map((_, t) => 0.5 + drawn.offsets.findLastIndex((start) => start <= t));
    const batch = {
      ...withStreams(drawn, { advantages }),
      updates: [Int32Array.of(0, 1, 2, 3, 4, 5)],
    };
    const before = freshState().weights;
    const plan = settings(objective, { optimizer: descent });
    const { state, metrics } = await learner.step(freshState(), batch, plan, others);
    const gradient = new Map(
      [...state.weights].map(([name, { data }]) => [
        name,
        Array.from(data, (value, i) => (before.get(name)!.data[i]! - value) / 1e-4),
      ]),
    );
    const squared = [...gradient.values()].flat().reduce((sum, one) => sum + one * one, 0);

    const loss = lossOf(objective);
    if (loss.kind !== 'coupled') throw new TypeError('not a coupled loss');
    const { temperature } = loss.from;
    const logprobsUnder = (weights: Weights): Float32Array => {
      const all = new Float64Array(batch.tokens.length);
      for (let i = 0; i + 1 < batch.offsets.length; i++) {
        const [start, end] = [batch.offsets[i]!, batch.offsets[i + 1]!];
        const tokens = Array.from(batch.tokens.subarray(start, end));
        all.set(referenceLogprobs(TINY, weights, tokens, temperature), start);
      }
      return all.map((value, i) => value * batch.mask[i]!) as unknown as Float32Array;
    };
    const fixed = {
      ...batch.streams,
      old: logprobsUnder(before),
      reference: logprobsUnder(others.reference),
    };
    const lossAt = (by: number) => {
      const moved: Weights = new Map(before);
      for (const [name, steps] of gradient) {
        const tensor = before.get(name)!;
        const data = Float64Array.from(tensor.data, (value, i) => value + by * steps[i]!);
        moved.set(name, { ...tensor, data: data as unknown as Float32Array });
      }
      return loss.compute(batch, [0, 1, 2, 3, 4, 5], { ...fixed, logprobs: logprobsUnder(moved) }).loss;
    };
    const h = 1e-4 / Math.sqrt(squared);
    expect((lossAt(h) - lossAt(-h)) / (2 * h) / squared).toBeCloseTo(1, 2);
    expect(metrics.loss).toBeCloseTo(lossAt(0), 4);
  },
);

describe('a batch of pairs', () => {
  const dpo: Objective = { kind: 'dpo', ...from, variant: 'sigmoid', beta: 0.1, labelSmoothing: 0 };

  it('is refused where an update has half of one, or says nothing of pairs', async () => {
    const batch = pairedBatch(1);
    const half = { ...batch, updates: [Int32Array.of(0, 1, 2)] };
    await expect(step(half, dpo)).rejects.toMatchObject({
      type: 'batch',
      message: expect.stringContaining('update 1 has 0 preferred and 1 other sequences of pair 1') as string,
    });
    await expect(step({ ...batch, sequences: {} }, dpo)).rejects.toMatchObject({ type: 'batch' });
    await expect(learner.step(freshState(), batch, settings(dpo))).rejects.toMatchObject({
      type: 'settings',
    });
  });

  it('is learnt from the same with log-probs of the reference in place of its weights', async () => {
    const batch = { ...pairedBatch(2), updates: [Int32Array.of(0, 1, 2, 3, 4, 5)] };
    const reference = new Float32Array(batch.tokens.length);
    for (let i = 0; i + 1 < batch.offsets.length; i++) {
      const [start, end] = [batch.offsets[i]!, batch.offsets[i + 1]!];
      const tokens = Array.from(batch.tokens.subarray(start, end));
      reference.set(referenceLogprobs(TINY, others.reference, tokens, from.temperature), start);
    }
    const a = await step(batch, dpo);
    const given = { ...batch, streams: { ...batch.streams, reference } };
    const b = await learner.step(freshState(), given, settings(dpo));
    expect(b.metrics.loss).toBeCloseTo(a.metrics.loss!, 5);
    expect(b.metrics.preference!.margin).toBeCloseTo(a.metrics.preference!.margin!, 4);
    expect(largestDifference(a.state.firstMoments, b.state.firstMoments)).toBeLessThan(1e-5);
  });

  it('comes to be ordered as its labels say', async () => {
    let [state, right] = [freshState(), 0];
    for (let i = 0; i < 10; i++) {
      const done = await learner.step(state, pairedBatch(4), settings(dpo), others);
      state = done.state;
      right = done.metrics.preference!.accuracy!;
    }
    expect(right).toBe(1);
  });
});
