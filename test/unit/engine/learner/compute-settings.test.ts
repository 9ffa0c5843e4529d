import { describe, expect, it } from 'vitest';
import { DEFAULT_COMPUTE, type ComputeSettings } from '../../../../engine/learner/contract.ts';
import { createLocalLearner } from '../../../../engine/learner/local-learner.ts';
import { createLearner } from '../../../../engine/learner/process/remote-learner.ts';
import type { ModelConfig } from '../../../../core/model/config.ts';
import { referenceLogprobs } from './reference-decoder.ts';
import { learnerOfFile } from './learner-of-file.ts';
import {
  bytes,
  freshState,
  GRPO,
  inUpdates,
  largestDifference,
  lively,
  randomBatch,
  settings,
  TINY,
  withStreams,
} from '../../../support/engine/tiny.ts';

/** Large enough that a row of products is worth rounding. */
const SMALL: ModelConfig = {
  ...TINY,
  vocabSize: 96,
  hiddenSize: 64,
  intermediateSize: 128,
  headSize: 16,
  maxPositions: 48,
};
const batch = inUpdates(randomBatch(12, SMALL), { minibatch: 6, epochs: 2 });
const plan = (compute: Partial<ComputeSettings> = {}) =>
  settings({ ...GRPO, importanceCap: 2 }, { compute: { ...DEFAULT_COMPUTE, ...compute } });
/** Rounded log-probs are compared on weights like those that one trains: normal(0, 0.06), a loss of some 5 nats. */
const parent = () => {
  const weights = lively(SMALL, 1);
  for (const { shape, data } of weights.values())
    if (shape.length > 1) data.forEach((x, i) => (data[i] = x * 0.3));
  return freshState(SMALL, weights);
};

const learner = await learnerOfFile();
const step = (compute?: Partial<ComputeSettings>) => learner.step(parent(), batch, plan(compute));

describe('products in bfloat16', () => {
  it('move log-probs by no more than the rounding of their operands explains', async () => {
    const exact = await step();
    // What float32 says now is what the rollout is taken to have said, so that the metric is the gap.
    const rollout = withStreams(batch, { samplerLogprobs: logprobs() });
    const same = await learner.step(parent(), rollout, plan());
    const rounded = await learner.step(parent(), rollout, plan({ precision: 'bfloat16' }));
    expect(same.metrics.logprobGapMax).toBeLessThan(1e-5);
    // 8 bits of mantissa: 0.4 % of an operand. Two layers' worth of it reaches the logits.
    expect(rounded.metrics.logprobGapMax).toBeGreaterThan(1e-5);
    expect(rounded.metrics.logprobGapMax).toBeLessThan(0.02);
    expect(rounded.metrics.logprobGapMean).toBeLessThan(0.005);
    expect(rounded.metrics.loss).toBeCloseTo(same.metrics.loss!, 2);
    expect(rounded.metrics.gradientNorm! / exact.metrics.gradientNorm!).toBeGreaterThan(0.5);
  });

  it('leave weights in float32, which differ from those of full precision by less than the rate', async () => {
    const { state } = await step({ precision: 'bfloat16' });
    const exact = await step();
    const difference = largestDifference(state.weights, exact.state.weights);
    expect(difference).toBeGreaterThan(0);
    expect(difference).toBeLessThan(4 * 2 * 1e-2);
    const kept = [...state.weights.values()].flatMap(({ data }) => Array.from(data));
    const rounded = kept.filter(
      (value) => (new Uint32Array(Float32Array.of(value).buffer)[0]! & 0xffff) === 0,
    );
    expect(rounded.length).toBeLessThan(0.01 * kept.length);
  });

  it('repeat to the bit', async () => {
    const [a, b] = [await step({ precision: 'bfloat16' }), await step({ precision: 'bfloat16' })];
    expect(bytes(b.state.weights).equals(bytes(a.state.weights))).toBe(true);
  });

  it.each(['eager', 'wasm'] as const)('are refused where there are none: %s', async (what) => {
    // tfjs holds one backend a process.
    const other = await (what === 'wasm'
      ? createLearner({ backend: 'wasm' })
      : createLocalLearner({ backend: 'cpu', mode: 'eager' }));
    try {
      const refused = other.step(parent(), batch, plan({ precision: 'bfloat16' }));
      await expect(refused).rejects.toMatchObject({ boundary: 'learner', type: 'precision' });
    } finally {
      await other.close();
    }
  });
});

describe('gradient checkpointing', () => {
  it('gives the step that keeps its activations, traced and eager', async () => {
    const kept = await step();
    const recomputed = await step({ gradientCheckpointing: true });
    // Adam divides by the size of a gradient: where that is all but zero its rounding shows.
    expect(largestDifference(recomputed.state.weights, kept.state.weights)).toBeLessThan(1e-4);
    expect(recomputed.metrics.gradientNorm).toBeCloseTo(kept.metrics.gradientNorm!, 5);
    const eager = await createLocalLearner({ backend: 'cpu', mode: 'eager' });
    try {
      const there = await eager.step(parent(), batch, plan({ gradientCheckpointing: true }));
      expect(largestDifference(there.state.weights, kept.state.weights)).toBeLessThan(1e-4);
    } finally {
      await eager.close();
    }
  });

  it('repeats to the bit', async () => {
    const [a, b] = [await step({ gradientCheckpointing: true }), await step({ gradientCheckpointing: true })];
    expect(bytes(b.state.weights).equals(bytes(a.state.weights))).toBe(true);
  });
});

describe('gradients accumulated over micro-batches', () => {
  it('add up to those of the whole minibatch', async () => {
    const whole = await step();
    for (const microBatchTokens of [48, 100]) {
      const parts = await step({ microBatchTokens });
      expect(parts.metrics.loss).toBeCloseTo(whole.metrics.loss!, 5);
      expect(parts.metrics.gradientNorm).toBeCloseTo(whole.metrics.gradientNorm!, 4);
      expect(largestDifference(parts.state.weights, whole.state.weights)).toBeLessThan(1e-3);
      const again = await step({ microBatchTokens });
      expect(bytes(again.state.weights).equals(bytes(parts.state.weights))).toBe(true);
    }
  });

  it('are as many as the setting says', async () => {
    const passes = async (microBatchTokens: number) => {
      let all = 0;
      await learner.step(parent(), batch, plan({ microBatchTokens }), undefined, (_, total) => (all = total));
      return all;
    };
    expect(await passes(48)).toBeGreaterThan(2 * (await passes(0)));
  });

  it('are refused with a negative number or a part of one', async () => {
    for (const microBatchTokens of [-1, 1.5]) {
      await expect(step({ microBatchTokens })).rejects.toMatchObject({ type: 'settings' });
    }
  });
});

/** Of every token under `parent`, by loops in float64. */
function logprobs(): Float32Array {
  const { weights } = parent();
  const all = new Float32Array(batch.tokens.length);
  for (let i = 0; i + 1 < batch.offsets.length; i++) {
    const [start, end] = [batch.offsets[i]!, batch.offsets[i + 1]!];
    all.set(referenceLogprobs(SMALL, weights, Array.from(batch.tokens.slice(start, end))), start);
  }
  return all;
}
