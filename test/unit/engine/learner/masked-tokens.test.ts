import { describe, expect, it } from 'vitest';
import type { TrainBatch, TrainState } from '../../../../engine/learner/contract.ts';
import { referenceLogprobs } from './reference-decoder.ts';
import { learnerOfFile } from './learner-of-file.ts';
import {
  bytes,
  freshState,
  GRPO,
  inUpdates,
  lively,
  settings,
  TINY,
  withStreams,
} from '../../../support/engine/tiny.ts';

const learner = await learnerOfFile('eager');

const PROMPT = 4;
const tokens = [1, 2, 3, 4, 5, 6, 7, 8, 4, 3, 2, 1, 8, 7, 6, 5];
const mask = Float32Array.from(tokens, (_, i) => (i % 8 < PROMPT ? 0 : 1));
const batch: TrainBatch = {
  tokens: Int32Array.from(tokens),
  offsets: Int32Array.of(0, 8, 16),
  mask,
  streams: {
    advantages: mask.map((bit, i) => bit * (i < 8 ? 1 : -1)),
    samplerLogprobs: new Float32Array(16),
  },
  sequences: {},
  updates: [Int32Array.of(0, 1)],
};

/** A policy that is sure of everything: what it would not say has a log-prob far below that of the smallest float32. */
function surePolicy(): TrainState {
  const weights = lively(TINY, 1);
  const head = weights.get('lm_head.weight')!;
  head.data.forEach((value, i) => (head.data[i] = value * 30));
  return freshState(TINY, weights);
}
const temperature = 0.2;
const sampledLogprobs = (): number[] =>
  [0, 8].flatMap((start) =>
    referenceLogprobs(TINY, surePolicy().weights, tokens.slice(start, start + 8), temperature),
  );
const careful = { ...settings(GRPO).optimizer, learningRate: 1e-9 };

describe('a prompt that the policy holds for impossible', () => {
  it('is one whose exponential overflows', () => {
    const ofPrompts = sampledLogprobs().filter((_, i) => mask[i] === 0);
    expect(Math.min(...ofPrompts)).toBeLessThan(-88.8);
  });

  it.each([
    ['several updates', { ...GRPO, temperature }, 1],
    [
      'several updates, importance weights and a reference',
      { ...GRPO, temperature, importanceCap: 2, beta: 0.1 },
      1,
    ],
    [
      'one update, importance weights and a reference',
      { ...GRPO, temperature, importanceCap: 2, beta: 0.1 },
      2,
    ],
  ])('ends no step with %s', async (_, objective, minibatch) => {
    const plan = settings(objective, { optimizer: careful });
    const given = withStreams(inUpdates(batch, { minibatch }), {
      samplerLogprobs: Float32Array.from(sampledLogprobs()),
    });
    const { metrics } = await learner.step(surePolicy(), given, plan, { reference: surePolicy().weights });
    expect(Number.isFinite(metrics.loss) && Number.isFinite(metrics.gradientNorm)).toBe(true);
    expect(metrics.gradientNorm).toBeGreaterThan(0);
  });
});

describe('a log-prob that is not finite', () => {
  it('is refused where it counts, before it reaches the weights', async () => {
    const broken = freshState();
    broken.weights.get('lm_head.weight')!.data[0] = Infinity;
    for (const minibatch of [1, 2]) {
      const failing = learner.step(broken, inUpdates(batch, { minibatch }), settings(GRPO));
      await expect(failing).rejects.toMatchObject({
        boundary: 'learner',
        type: 'diverged',
        retryable: false,
        message: expect.stringContaining('log-prob of token') as string,
      });
    }
    const reference = freshState().weights;
    reference.get('lm_head.weight')!.data[0] = NaN;
    const failing = learner.step(freshState(), batch, settings({ ...GRPO, beta: 0.1 }), { reference });
    await expect(failing).rejects.toMatchObject({
      type: 'diverged',
      message: expect.stringContaining('the reference') as string,
    });
    // The learner is as good as before.
    const next = await learner.step(freshState(), batch, settings(GRPO));
    const other = await learner.step(freshState(), batch, settings(GRPO));
    expect(bytes(next.state.weights).equals(bytes(other.state.weights))).toBe(true);
  });
});
