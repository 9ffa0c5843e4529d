import { describe, expect, it, onTestFinished } from 'vitest';
import type { LoraSpec } from '../../../../core/schema/lora.ts';
import type { TrainBatch, TrainSettings, TrainState } from '../../../../engine/learner/contract.ts';
import { createLocalLearner } from '../../../../engine/learner/local-learner.ts';
import { initialAdapter } from '../../../../engine/lora/initial-adapter.ts';
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

const learner = await learnerOfFile('eager');

const batch = randomBatch(6);
const { advantages, samplerLogprobs } = batch.streams as Record<
  'advantages' | 'samplerLogprobs',
  Float32Array
>;
const withAdvantages = (advantage: number): TrainBatch =>
  withStreams(batch, { advantages: advantages.map(() => advantage) });

describe('a supervised step', () => {
  it('learns a small batch by heart', async () => {
    let state = freshState();
    let loss = Infinity;
    const demonstrations = withAdvantages(1);
    for (let i = 0; i < 60; i++) {
      const step = await learner.step(state, demonstrations, settings({ kind: 'supervised' }));
      state = step.state;
      loss = step.metrics.loss!;
    }
    expect(loss).toBeLessThan(0.3);
    expect(state.updates).toBe(60);
  });

  it('makes negative examples less likely', async () => {
    const first = await learner.step(freshState(), withAdvantages(-1), settings({ kind: 'supervised' }));
    const second = await learner.step(first.state, withAdvantages(-1), settings({ kind: 'supervised' }));
    expect(second.metrics.loss).toBeLessThan(first.metrics.loss!);
  });

  it('splits an epoch into minibatches and counts updates and tokens', async () => {
    const seen: [number, number][] = [];
    const { state, metrics } = await learner.step(
      freshState(),
      inUpdates(withAdvantages(1), { minibatch: 4, epochs: 3 }),
      settings({ kind: 'supervised' }),
      undefined,
      (done, total) => seen.push([done, total]),
    );
    expect(metrics.updates).toBe(6);
    expect(state.updates).toBe(6);
    expect(metrics.tokens).toBe(3 * batch.tokens.length);
    expect(seen.at(-1)).toEqual([seen.length, seen.length]);
  });
});

describe('a GRPO step', () => {
  it('raises the likelihood of good tokens and lowers that of bad ones', async () => {
    const { state } = await learner.step(freshState(), batch, settings(GRPO));
    const again = await learner.step(freshState(), batch, settings(GRPO));
    expect(bytes(state.weights).equals(bytes(again.state.weights))).toBe(true);
    let gain = 0;
    for (let i = 0; i + 1 < batch.offsets.length; i++) {
      const [start, end] = [batch.offsets[i]!, batch.offsets[i + 1]!];
      const tokens = Array.from(batch.tokens.slice(start, end));
      const before = referenceLogprobs(TINY, freshState().weights, tokens);
      const after = referenceLogprobs(TINY, state.weights, tokens);
      after.forEach((value, t) => {
        gain += batch.mask[start + t]! * advantages[start + t]! * (value - before[t]!);
      });
    }
    expect(gain).toBeGreaterThan(0);
  });

  it('does not read what the mask leaves out', async () => {
    const noise = (values: Float32Array, by: number) =>
      values.map((value, i) => (batch.mask[i] === 1 ? value : value + by));
    const cut = inUpdates(batch, { minibatch: 3, epochs: 2 });
    const other = withStreams(cut, {
      advantages: noise(advantages, 100),
      samplerLogprobs: noise(samplerLogprobs, -50),
    });
    const objective = { ...GRPO, beta: 0.1, importanceCap: 2 };
    const reference = lively(TINY, 2);
    const plan = settings(objective);
    const a = await learner.step(freshState(), cut, plan, { reference });
    const b = await learner.step(freshState(), other, plan, { reference });
    expect(bytes(b.state.weights).equals(bytes(a.state.weights))).toBe(true);
    expect({ ...b.metrics, seconds: 0 }).toEqual({ ...a.metrics, seconds: 0 });
  });

  it('has no gradient when every advantage is zero, but that of the KL', async () => {
    const still = await learner.step(freshState(), withAdvantages(0), settings(GRPO));
    expect(still.metrics.gradientNorm).toBe(0);
    expect(largestDifference(still.state.weights, freshState().weights)).toBe(0);
    const pulled = await learner.step(freshState(), withAdvantages(0), settings({ ...GRPO, beta: 0.5 }), {
      reference: lively(TINY, 2),
    });
    expect(pulled.metrics.gradientNorm).toBeGreaterThan(0);
    expect(pulled.metrics.kl).toBeGreaterThan(0);
    expect(pulled.metrics.loss).toBeCloseTo(0.5 * pulled.metrics.kl!, 5);
  });

  it('measures no KL against itself', async () => {
    const { metrics } = await learner.step(freshState(), batch, settings({ ...GRPO, beta: 0.5 }), {
      reference: freshState().weights,
    });
    expect(metrics.kl).toBe(0);
  });

  it('clips nothing at the first update and something after many', async () => {
    const first = await learner.step(freshState(), batch, settings(GRPO));
    expect(first.metrics.clipFraction).toBe(0);
    const many = await learner.step(freshState(), inUpdates(batch, { epochs: 8 }), settings(GRPO));
    expect(many.metrics.clipFraction).toBeGreaterThan(0.05);
  });

  it('measures the gap to the rollout engine under the weights that it starts from', async () => {
    const reported = new Float32Array(batch.tokens.length);
    for (let i = 0; i + 1 < batch.offsets.length; i++) {
      const [start, end] = [batch.offsets[i]!, batch.offsets[i + 1]!];
      reported.set(
        referenceLogprobs(TINY, freshState().weights, Array.from(batch.tokens.slice(start, end))),
        start,
      );
    }
    const off = batch.mask.indexOf(1);
    reported[off]! += 0.5;
    for (const plan of [{}, { minibatch: 2, epochs: 2 }]) {
      const given = withStreams(inUpdates(batch, plan), { samplerLogprobs: reported });
      const { metrics } = await learner.step(freshState(), given, settings(GRPO));
      expect(metrics.logprobGapMax).toBeCloseTo(0.5, 4);
      const count = batch.mask.reduce((sum, value) => sum + value, 0);
      expect(metrics.logprobGapMean).toBeCloseTo(0.5 / count, 4);
    }
  });

  it('updates nothing where that gap is above its bound, with one update or several', async () => {
    for (const plan of [{}, { minibatch: 2, epochs: 2 }]) {
      const given = inUpdates(batch, plan);
      const { metrics, state } = await learner.step(freshState(), given, settings(GRPO));
      const mean = metrics.logprobGapMean!;
      expect(mean).toBeGreaterThan(0);
      const within = { ...settings(GRPO), maxLogprobGap: mean * 1.01 };
      const same = await learner.step(freshState(), given, within);
      expect([...same.state.weights.values()]).toEqual([...state.weights.values()]);
      const refused = learner.step(freshState(), given, { ...within, maxLogprobGap: mean * 0.99 });
      await expect(refused).rejects.toMatchObject({
        boundary: 'learner',
        type: 'logprob-gap',
        retryable: false,
      });
      // The learner goes on as if it had not been asked.
      const after = await learner.step(freshState(), given, settings(GRPO));
      expect([...after.state.weights.values()]).toEqual([...state.weights.values()]);
    }
  });

  it('measures that gap where it is none of drift: not in late episodes', async () => {
    const late = Float32Array.from({ length: 6 }, (_, i) => Number(i === 2));
    const drifted = samplerLogprobs.map((logprob, i) =>
      i >= batch.offsets[2]! && i < batch.offsets[3]! ? logprob - 20 : logprob,
    );
    const step = async (given: TrainBatch) =>
      (await learner.step(freshState(), given, settings({ ...GRPO, importanceCap: 2 }))).metrics
        .logprobGapMax!;
    const given = withStreams(batch, { samplerLogprobs: drifted });
    expect(await step(given)).toBeGreaterThan(15);
    expect(await step({ ...given, sequences: { late } })).toBeLessThan(15);
    expect(await step({ ...batch, sequences: { late: late.map(() => 1) } })).toBeNull();
  });

  it('tells it of late episodes, too, by how stale they are', async () => {
    const late = Float32Array.from({ length: 6 }, (_, i) => Number(i >= 2));
    const staleness = Float32Array.of(0, 0, 1, 1, 3, -1);
    const step = async (sequences: TrainBatch['sequences'], plan = {}) => {
      const objective = { ...GRPO, importanceCap: 2 };
      const given = inUpdates({ ...batch, sequences }, plan);
      return (await learner.step(freshState(), given, settings(objective))).metrics;
    };
    const { logprobGapMean, logprobGapByStaleness: gaps } = await step({ late, staleness });
    expect(gaps!.map((gap) => gap.staleness)).toEqual([0, 1, 3]);
    expect(gaps![0]!.mean).toBe(logprobGapMean);
    const counted = (from: number, end: number) =>
      batch.mask.subarray(batch.offsets[from], batch.offsets[end]).reduce((sum, bit) => sum + bit, 0);
    expect(gaps!.map(({ tokens }) => tokens)).toEqual([counted(0, 2), counted(2, 4), counted(4, 5)]);
    // Of the sequences of one age alone it is the gap.
    const alone = await step({ late: late.map((_, i) => Number(i !== 2 && i !== 3)) });
    expect(gaps![1]!.mean).toBe(alone.logprobGapMean);
    // The same where the log-probs come before the first of several updates.
    const several = (await step({ late, staleness }, { minibatch: 2, epochs: 2 })).logprobGapByStaleness!;
    several.forEach(({ mean }, i) => expect(mean).toBeCloseTo(gaps![i]!.mean, 5));
    expect(await step({ late })).not.toHaveProperty('logprobGapByStaleness');
  });

  it('has no such gap to tell of where nothing was sampled', async () => {
    const { metrics } = await learner.step(freshState(), batch, settings({ kind: 'supervised' }));
    expect([metrics.logprobGapMax, metrics.logprobGapMean]).toEqual([null, null]);
  });

  it('weighs tokens alike, or sequences alike', async () => {
    const counts = Array.from({ length: 6 }, (_, i) =>
      batch.mask.slice(batch.offsets[i], batch.offsets[i + 1]).reduce((sum, value) => sum + value, 0),
    );
    // Sequence i has advantage i: at ratio 1 the loss is minus the mean advantage.
    const given = withStreams(batch, {
      advantages: advantages.map((_, t) => batch.offsets.findLastIndex((start) => start <= t)),
    });
    const total = counts.reduce((sum, count) => sum + count, 0);
    const meanOfTokens = counts.reduce((sum, count, i) => sum + count * i, 0) / total;
    const loss = async (aggregation: 'token' | 'sequence') =>
      (await learner.step(freshState(), given, settings({ ...GRPO, aggregation }))).metrics.loss;
    expect(await loss('token')).toBeCloseTo(-meanOfTokens, 4);
    expect(await loss('sequence')).toBeCloseTo(-2.5, 4);
  });

  it('reports an entropy between 0 and that of guessing', async () => {
    const { metrics } = await learner.step(freshState(), batch, settings(GRPO));
    expect(metrics.entropy).toBeGreaterThan(0);
    expect(metrics.entropy).toBeLessThan(Math.log(TINY.vocabSize));
  });
});

describe('the optimizer', () => {
  it('is Adam with warm-up and a clip of the global norm', async () => {
    const optimizer = {
      learningRate: 0.01,
      warmupUpdates: 4,
      beta1: 0.9,
      beta2: 0.99,
      epsilon: 1e-3,
      maxGradientNorm: 0.05,
    };
    const objective = { kind: 'supervised' } as const;
    const { state, metrics } = await learner.step(
      freshState(),
      withAdvantages(1),
      settings(objective, { optimizer }),
    );
    expect(metrics.gradientNorm).toBeGreaterThan(0.05);
    const before = freshState().weights.get('lm_head.weight')!.data;
    const after = state.weights.get('lm_head.weight')!.data;
    const first = state.firstMoments.get('lm_head.weight')!.data;
    const second = state.secondMoments.get('lm_head.weight')!.data;
    const rate = (0.01 * Math.sqrt(1 - 0.99)) / 4 / (1 - 0.9);
    after.forEach((value, i) => {
      const gradient = first[i]! / 0.1;
      expect(second[i]).toBeCloseTo(0.01 * gradient ** 2, 8);
      expect(value).toBeCloseTo(before[i]! - (rate * first[i]!) / (Math.sqrt(second[i]!) + 1e-3), 6);
    });
    const squares = [...state.firstMoments.values()].flatMap(({ data }) =>
      [...data].map((m) => (m / 0.1) ** 2),
    );
    expect(Math.sqrt(squares.reduce((sum, value) => sum + value, 0))).toBeCloseTo(0.05, 5);
  });

  it('goes on from a state that was read back, as from the one that it still holds', async () => {
    const plan = settings(GRPO);
    const first = await learner.step(freshState(), batch, plan);
    const held = await learner.step(first.state, batch, plan);
    const copy: TrainState = structuredClone(first.state);
    const fed = await learner.step(copy, batch, plan);
    for (const part of ['weights', 'firstMoments', 'secondMoments'] as const) {
      expect(bytes(fed.state[part]).equals(bytes(held.state[part]))).toBe(true);
    }
  });
});

describe('what cannot be learned from', () => {
  const fails = (change: Partial<TrainBatch>, state = freshState()) =>
    expect(learner.step(state, { ...batch, ...change }, settings(GRPO))).rejects;

  it('is a batch that does not fit the model', async () => {
    const expected = { boundary: 'learner', type: 'batch', retryable: false };
    const replaced = <T extends Int32Array | Float32Array>(values: T, at: number, value: number): T => {
      const copy = values.slice() as T;
      copy[at] = value;
      return copy;
    };
    await fails({ tokens: replaced(batch.tokens, 3, TINY.vocabSize) }).toMatchObject(expected);
    await fails({ tokens: replaced(batch.tokens, 3, -1) }).toMatchObject(expected);
    await fails({ mask: replaced(batch.mask, 0, 1) }).toMatchObject(expected);
    await fails({ mask: batch.mask.map(() => 0) }).toMatchObject(expected);
    await fails({ mask: batch.mask.slice(1) }).toMatchObject(expected);
    await fails(withStreams(batch, { advantages: replaced(advantages, 5, NaN) })).toMatchObject(expected);
    await fails({ streams: { samplerLogprobs } }).toMatchObject({
      message: expect.stringContaining('advantages'),
    });
    await fails({ sequences: { late: new Float32Array(5) } }).toMatchObject(expected);
    for (const updates of [[], [[]], [[0, 6]], [[0, -1]], [[1, 1]]])
      await fails({ updates: updates.map((update) => Int32Array.from(update)) }).toMatchObject(expected);
    await fails({ offsets: Int32Array.of(0, 4) }).toMatchObject(expected);
    await fails({}, freshState({ ...TINY, maxPositions: 8 })).toMatchObject(expected);
  });

  it('is a step that diverges, and the state that it came from stays good', async () => {
    const weights = lively(TINY, 1);
    weights.get('lm_head.weight')!.data[0] = Infinity;
    await fails({}, freshState(TINY, weights)).toMatchObject({ boundary: 'learner', type: 'diverged' });
    const good = await learner.step(freshState(), batch, settings(GRPO));
    const wild = withAdvantages(3e38);
    await expect(learner.step(good.state, wild, settings(GRPO))).rejects.toMatchObject({ type: 'diverged' });
    const next = await learner.step(good.state, batch, settings(GRPO));
    expect(next.state.updates).toBe(2);
  });

  it('is a setting without sense, or weights of another model', async () => {
    const step = (plan: ReturnType<typeof settings>, state = freshState()) =>
      expect(learner.step(state, batch, plan)).rejects;
    await step(settings({ ...GRPO, beta: 0.1 })).toMatchObject({ type: 'settings' });
    await step(settings({ ...GRPO, temperature: 0 })).toMatchObject({ type: 'settings' });
    const other = lively({ ...TINY, hiddenSize: 8 }, 1);
    await step(settings(GRPO), freshState(TINY, other)).toMatchObject({ type: 'weights' });
  });
});

it('goes on from its own state when another learner of the process has stepped meanwhile', async () => {
  const other = await createLocalLearner({ backend: 'cpu', mode: 'eager' });
  onTestFinished(() => other.close());
  // Their variables of TensorFlow would have the same names if each learner counted its own.
  const parents = await Promise.all(
    [learner, other].map(async (one, i) => {
      const { state } = await one.step(freshState(TINY, lively(TINY, i)), batch, settings(GRPO));
      return { one, state };
    }),
  );
  for (const { one, state } of parents) {
    const held = await one.step(state, batch, settings(GRPO));
    const fresh = await createLocalLearner({ backend: 'cpu', mode: 'eager' });
    const expected = await fresh.step(state, batch, settings(GRPO));
    await fresh.close();
    expect(bytes(held.state.weights).equals(bytes(expected.state.weights))).toBe(true);
  }
});

describe('a step without moments', () => {
  const { optimizer } = settings(GRPO);
  const critic = { clip: 0.2, optimizer };
  const zeros = batch.mask.map(() => 0);
  const given = withStreams(batch, { values: zeros, returns: batch.mask.map((bit, i) => bit * (i % 3)) });
  const lora: LoraSpec = { rank: 2, alpha: 4, rsLora: false, targetModules: ['q_proj'] };
  const adapted = (): TrainState => ({
    ...freshState(),
    adapter: { lora, weights: initialAdapter(TINY, lora, 1) },
  });
  const policyOf = ({ weights, adapter, firstMoments, secondMoments }: TrainState) =>
    Buffer.concat([adapter?.weights ?? weights, firstMoments, secondMoments].map(bytes));
  const criticOf = ({ critic: its }: TrainState) =>
    its && Buffer.concat([its.weights, its.firstMoments, its.secondMoments].map(bytes));
  const steps = async (from: TrainState, plan: TrainSettings, without: readonly boolean[]) => {
    let state = from;
    for (const withoutMoments of without)
      ({ state } = await learner.step(state, given, { ...plan, withoutMoments }));
    return state;
  };

  it.each([
    ['of a policy', freshState, settings(GRPO)],
    ['of an adapter with a critic', adapted, settings(GRPO, { critic })],
  ])('%s is the same step, and the next with moments has those that stayed', async (_, begin, plan) => {
    const expected = await steps(begin(), plan, [false, false, false]);
    const before = await steps(begin(), plan, [true, true]);
    expect([before.withoutMoments, before.firstMoments.size, before.secondMoments.size]).toEqual([
      true,
      0,
      0,
    ]);
    expect(before.critic?.withoutMoments).toBe(plan.critic && true);
    const { state } = await learner.step(before, given, plan);
    expect(state.withoutMoments).toBeUndefined();
    expect(policyOf(state).equals(policyOf(expected))).toBe(true);
    expect(criticOf(state)).toEqual(criticOf(expected));
    expect(state.updates).toBe(3);
  });

  it('of the critic alone leaves the policy the moments that it has, or has not', async () => {
    const alone = settings(null, { critic });
    const fresh = await steps(freshState(), alone, [true]);
    expect([fresh.withoutMoments, fresh.firstMoments.size]).toEqual([undefined, 0]);
    expect(fresh.critic!.withoutMoments).toBe(true);
    const both = settings(GRPO, { critic });
    const moved = (await learner.step(freshState(), given, { ...both, withoutMoments: true })).state;
    const left = await steps(moved, alone, [true, false]);
    const expected = await steps(await steps(freshState(), both, [false]), alone, [false, false]);
    expect(left.withoutMoments).toBeUndefined();
    expect(policyOf(left).equals(policyOf(expected))).toBe(true);
    expect(criticOf(left)).toEqual(criticOf(expected));
  });

  it('cannot be gone on from when another step has come between, nor from a copy', async () => {
    const plan = { ...settings(GRPO), withoutMoments: true };
    const gone = { boundary: 'learner', type: 'moments-gone', retryable: true };
    const { state } = await learner.step(freshState(), batch, plan);
    await expect(learner.step(structuredClone(state), batch, plan)).rejects.toMatchObject(gone);
    const { state: other } = await learner.step(freshState(), batch, plan);
    await expect(learner.step(state, batch, plan)).rejects.toMatchObject(gone);
    const { critic: _, ...begun } = (
      await learner.step(freshState(), given, { ...settings(null, { critic }), withoutMoments: true })
    ).state;
    // Nobody asks for the moments of a critic that is left behind.
    expect((await learner.step(begun, batch, plan)).state.updates).toBe(1);
    await expect(learner.step(other, batch, plan)).rejects.toMatchObject(gone);
  });
});
