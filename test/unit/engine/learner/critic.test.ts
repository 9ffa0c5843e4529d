import { describe, expect, it } from 'vitest';
import { normal, randomKey } from '../../../../core/random.ts';
import type { CriticSettings, CriticState } from '../../../../engine/learner/contract.ts';
import { criticShapes } from '../../../../engine/learner/critic.ts';
import { createLearner } from '../../../../engine/learner/process/remote-learner.ts';
import { initialAdapter } from '../../../../engine/lora/initial-adapter.ts';
import type { Weights } from '../../../../core/model/config.ts';
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

const learner = await learnerOfFile();

const drawn = randomBatch(6);
const key = randomKey('critic');
const near = (mean: number, from: number) =>
  drawn.mask.map((bit, i) => bit * (mean + 0.5 * normal(key, from + i)));
/** Returns that a state's token tells of, so that there is something to learn. */
const returns = drawn.mask.map((bit, i) => bit * (drawn.tokens[Math.max(0, i - 1)]! % 2));
const batch = withStreams(drawn, { returns, values: near(0.2, 1000) });
const { optimizer } = settings(GRPO);
const critic: CriticSettings = { clip: 0, optimizer };
const whole = ({ weights, firstMoments, secondMoments }: CriticState): Buffer =>
  Buffer.concat([bytes(weights), bytes(firstMoments), bytes(secondMoments)]);

describe('a critic', () => {
  it('begins as a copy of the policy that expects 0 of every state', async () => {
    const before = await learner.score(freshState(), batch, { values: true });
    expect(before.values).toEqual(new Float32Array(batch.tokens.length));
    const { state, metrics } = await learner.step(freshState(), batch, settings(GRPO, { critic }));
    expect([...state.critic!.weights.keys()]).toEqual(criticShapes(TINY).map(([name]) => name));
    expect(state.critic!.updates).toBe(1);
    const counted = batch.mask.reduce((sum, bit) => sum + bit, 0);
    const squares = returns.reduce((sum, value) => sum + value ** 2, 0);
    expect(metrics.critic!.loss).toBeCloseTo(squares / counted / 2, 5);
    expect(metrics.critic!.explainedVariance).toBeCloseTo(0, 6);
  });

  it('leaves the policy as it is without one, to the bit', async () => {
    const cut = inUpdates(batch, { minibatch: 3, epochs: 2 });
    const without = await learner.step(freshState(), cut, settings(GRPO));
    const beside = await learner.step(freshState(), cut, settings(GRPO, { critic }));
    expect(bytes(beside.state.weights).equals(bytes(without.state.weights))).toBe(true);
    expect(without.state.critic).toBeUndefined();
    expect(beside.state.critic!.updates).toBe(4);
  });

  it('learns returns, alone, while the policy stays', async () => {
    let state = freshState();
    const before = bytes(state.weights);
    let explained: number | null = null;
    for (let i = 0; i < 60; i++) {
      const done = await learner.step(state, batch, settings(null, { critic }));
      state = done.state;
      explained = done.metrics.critic!.explainedVariance;
      // Nothing of the policy was measured, and nothing was held.
      expect(done.metrics).toMatchObject({
        loss: null,
        gradientNorm: null,
        entropy: null,
        kl: null,
        clipFraction: null,
        critic: { clipFraction: null },
        tokens: batch.tokens.length,
      });
    }
    expect(explained).toBeGreaterThan(0.9);
    expect(bytes(state.weights).equals(before)).toBe(true);
    expect([state.updates, state.critic!.updates]).toEqual([0, 60]);
    const { values } = await learner.score(state, batch, { values: true });
    const wrong = values!.map((value, i) => batch.mask[i]! * Math.abs(value - returns[i]!));
    expect(
      wrong.reduce((sum, one) => sum + one, 0) / batch.mask.filter((bit) => bit === 1).length,
    ).toBeLessThan(0.2);
  });

  it('has the gradient of finite differences through its whole network, with the clip', async () => {
    const descent = { ...optimizer, learningRate: 1e2, beta1: 0, beta2: 0, epsilon: 1e6, maxGradientNorm: 0 };
    const plan = settings(null, { critic: { clip: 0.2, optimizer: descent } });
    // A head that is not 0, so that all of the network matters.
    const weights: Weights = new Map(
      criticShapes(TINY).map(([name, shape], n) => {
        const data = lively(TINY, 4).get(name)?.data;
        const size = shape.reduce((a, b) => a * b, 1);
        return [
          name,
          { shape, data: data ?? Float32Array.from({ length: size }, (_, i) => normal(key, n * 100 + i)) },
        ];
      }),
    );
    const parent = (given: Weights) => ({
      ...freshState(),
      critic: { weights: given, firstMoments: new Map(), secondMoments: new Map(), updates: 0 },
    });
    const lossAt = async (given: Weights) => {
      const { state, metrics } = await learner.step(parent(given), batch, plan);
      return {
        loss: metrics.critic!.loss,
        after: state.critic!.weights,
        clipped: metrics.critic!.clipFraction,
      };
    };
    const { after, clipped } = await lossAt(weights);
    expect(clipped).toBeGreaterThan(0.05);
    for (const [name, shape] of criticShapes(TINY)) {
      const { data } = weights.get(name)!;
      const gradient = data.map((value, i) => (value - after.get(name)!.data[i]!) / 1e-4);
      const norm = Math.hypot(...gradient);
      const moved = (by: number): Weights =>
        new Map([
          ...weights,
          [name, { shape, data: data.map((value, i) => value + (by * gradient[i]!) / norm) }],
        ]);
      const h = 4e-3;
      const slope = ((await lossAt(moved(h))).loss - (await lossAt(moved(-h))).loss) / (2 * h);
      expect(Math.abs(slope - norm), name).toBeLessThan(2e-3 + 0.03 * norm);
    }
  });

  it('reads nothing where the mask is 0, and refuses what lacks its streams or is not finite', async () => {
    const plan = settings(GRPO, { critic: { clip: 0.2, optimizer } });
    const noise = (values: Float32Array) =>
      values.map((value, i) => (batch.mask[i] === 1 ? value : value + 70));
    const { returns, values } = batch.streams;
    const noisy = withStreams(batch, { returns: noise(returns!), values: noise(values!) });
    const a = await learner.step(freshState(), batch, plan);
    const b = await learner.step(freshState(), noisy, plan);
    expect(whole(b.state.critic!).equals(whole(a.state.critic!))).toBe(true);
    await expect(learner.step(freshState(), drawn, plan)).rejects.toMatchObject({
      type: 'batch',
      message: expect.stringContaining('returns') as string,
    });
    const broken = structuredClone(a.state);
    broken.critic!.weights.get('value_head.bias')!.data[0] = NaN;
    await expect(learner.step(broken, batch, plan)).rejects.toMatchObject({ type: 'diverged' });
    await expect(learner.score(broken, batch, { values: true })).rejects.toMatchObject({ type: 'diverged' });
    const small = structuredClone(a.state);
    small.critic!.weights.delete('value_head.bias');
    await expect(learner.step(small, batch, plan)).rejects.toMatchObject({ type: 'weights' });
    await expect(learner.step(freshState(), batch, settings(null))).rejects.toMatchObject({
      type: 'settings',
    });
  });

  it('goes on to the bit from a copy of its state, in this process or another, with scores between', async () => {
    const plan = settings(GRPO, { critic: { clip: 0.2, optimizer } });
    const first = await learner.step(freshState(), batch, plan);
    const second = await learner.step(first.state, batch, plan);
    const other = await createLearner({ backend: 'cpu' });
    try {
      const there = await other.step(freshState(), batch, plan);
      expect(whole(there.state.critic!).equals(whole(first.state.critic!))).toBe(true);
      const scored = await other.score(there.state, batch, {
        values: true,
        logprobs: { temperature: 1, topK: 0 },
      });
      const here = await learner.score(structuredClone(first.state), batch, {
        values: true,
        logprobs: { temperature: 1, topK: 0 },
      });
      expect(scored).toEqual(here);
      const again = await other.step(there.state, batch, plan);
      expect(whole(again.state.critic!).equals(whole(second.state.critic!))).toBe(true);
      expect(bytes(again.state.weights).equals(bytes(second.state.weights))).toBe(true);
      const ofReference = await other.score({ config: TINY, weights: lively(TINY, 2) }, batch, {
        values: true,
      });
      expect(ofReference.values).toEqual(new Float32Array(batch.tokens.length));
    } finally {
      await other.close();
    }
  });

  it('of a policy with an adapter is trained whole, and ends with the step that trains none: the next one begins anew', async () => {
    const lora = { rank: 2, alpha: 4, rsLora: false, targetModules: ['q_proj' as const] };
    const state = { ...freshState(), adapter: { lora, weights: initialAdapter(TINY, lora, 1) } };
    const trained = await learner.step(state, batch, settings(GRPO, { critic }));
    expect(bytes(trained.state.weights).equals(bytes(state.weights))).toBe(true);
    const began = trained.state.critic!.weights.get('model.embed_tokens.weight')!.data;
    expect([...began]).toEqual([...state.weights.get('model.embed_tokens.weight')!.data]);
    const on = await learner.step(trained.state, batch, settings(GRPO, { critic }));
    expect(largestDifference(on.state.critic!.weights, trained.state.critic!.weights)).toBeGreaterThan(1e-3);
    const ended = await learner.step(on.state, batch, settings(GRPO));
    expect(ended.state.critic).toBeUndefined();
    const back = await learner.step(ended.state, batch, settings(GRPO, { critic }));
    expect(back.state.critic!.updates).toBe(1);
    const fresh = await learner.step(structuredClone(ended.state), batch, settings(GRPO, { critic }));
    expect(whole(back.state.critic!).equals(whole(fresh.state.critic!))).toBe(true);
  });
});

it('scores log-probs of any model where the mask counts, like a decoder written with loops', async () => {
  const weights = lively(TINY, 8);
  const from = { temperature: 0.7, topK: 0 };
  const { logprobs, ...rest } = await learner.score({ config: TINY, weights }, batch, {
    logprobs: from,
  });
  expect(rest).toEqual({});
  for (let i = 0; i + 1 < batch.offsets.length; i++) {
    const [start, end] = [batch.offsets[i]!, batch.offsets[i + 1]!];
    const tokens = Array.from(batch.tokens.subarray(start, end));
    referenceLogprobs(TINY, weights, tokens, 0.7).forEach((value, t) => {
      expect(logprobs![start + t]).toBeCloseTo(batch.mask[start + t]! * value, 4);
    });
  }
});
