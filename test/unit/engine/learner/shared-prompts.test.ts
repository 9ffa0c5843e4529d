import { describe, expect, it, test } from 'vitest';
import type { Weights } from '../../../../core/model/config.ts';
import { RandomStream } from '../../../../core/random.ts';
import { packing, positionsIn } from '../../../../engine/learner/batch/row-packing.ts';
import { DEFAULT_COMPUTE, type TrainBatch } from '../../../../engine/learner/contract.ts';
import { beginCritic } from '../../../../engine/learner/critic.ts';
import { initialAdapter } from '../../../../engine/lora/initial-adapter.ts';
import { loadTensorflowBackend } from '../../../../engine/learner/tensorflow/backend.ts';
import {
  CASE_MODEL,
  caseBatch,
  LEARNER_CASES,
  type LearnerCase,
} from '../../../support/engine/learner-cases.ts';
import { bytes, freshState, lively, settings } from '../../../support/engine/tiny.ts';
import { learnerOfFile } from './learner-of-file.ts';

const learner = await learnerOfFile();
const PROMPT = 24;
const named = (name: string): LearnerCase => LEARNER_CASES.find((one) => one.name === name)!;

/** The case's batch with one of three prompts before each sequence; two of them differ in their last but one token. */
function withPrompts(one: LearnerCase): TrainBatch {
  const batch = caseBatch(one);
  const random = new RandomStream('prompts');
  const first = Array.from({ length: PROMPT }, () => random.int(0, 59));
  const prompts = [first, first.with(PROMPT - 2, (first.at(-2)! + 1) % 60), first.toReversed()];
  const count = batch.offsets.length - 1;
  /** Sequences in the order of the batch; those of two pairs have one prompt. */
  const longer = <T>(values: ArrayLike<T>, before: (sequence: number) => readonly T[]): T[] =>
    Array.from({ length: count }, (_, i) => [
      ...before(i),
      ...Array.from(values).slice(batch.offsets[i], batch.offsets[i + 1]),
    ]).flat();
  const zeros = (values: Float32Array) =>
    Float32Array.from(longer(values, () => Array.from({ length: PROMPT }, () => 0)));
  const { kept } = batch;
  const sets =
    kept &&
    longer(
      Array.from(batch.tokens, (_, i) => kept.ids.subarray(kept.offsets[i], kept.offsets[i + 1])),
      () => Array.from({ length: PROMPT }, () => new Int32Array(0)),
    );
  const ends = (lengths: number[]): Int32Array => {
    let end = 0;
    return Int32Array.from([0, ...lengths.map((length) => (end += length))]);
  };
  return {
    ...batch,
    tokens: Int32Array.from(longer(batch.tokens, (i) => prompts[Math.floor(i / 4) % 3]!)),
    offsets: batch.offsets.map((offset, i) => offset + PROMPT * i),
    mask: zeros(batch.mask),
    streams: Object.fromEntries(Object.entries(batch.streams).map(([name, all]) => [name, zeros(all)])),
    ...(sets && {
      kept: {
        ids: Int32Array.from(sets.flatMap((set) => [...set])),
        offsets: ends(sets.map(({ length }) => length)),
      },
    }),
  };
}

/** One case's step with and without shared prompts, from the same state. */
function stepping(one: LearnerCase, batch: TrainBatch) {
  const { objective, more } = one;
  const config = { ...(one.model ?? CASE_MODEL), maxPositions: 96 };
  const parent = freshState(config, lively(config, 1));
  if (more?.lora) parent.adapter = { lora: more.lora, weights: initialAdapter(config, more.lora, 1) };
  const others = {
    ...(one.reference && { reference: lively(config, 2) }),
    ...(one.teachers && {
      teachers: Array.from({ length: one.teachers }, (_, i) => ({ config, weights: lively(config, 3 + i) })),
    }),
  };
  return (sharePrompts: boolean | undefined, changed: Partial<typeof DEFAULT_COMPUTE> = {}) => {
    const compute = {
      ...DEFAULT_COMPUTE,
      ...more?.compute,
      ...changed,
      ...(sharePrompts !== undefined && { sharePrompts }),
    };
    return learner.step(parent, batch, settings(objective, { compute, critic: more?.critic }), others);
  };
}

/** Largest difference of any entry, relative to the largest entry. */
function relative(a: Weights, b: Weights): number {
  let [difference, largest] = [0, 0];
  for (const [name, { data }] of a) {
    data.forEach((value, i) => {
      difference = Math.max(difference, Math.abs(value - b.get(name)!.data[i]!));
      largest = Math.max(largest, Math.abs(value));
    });
  }
  return difference / largest;
}

/**
 * Both sum the same terms, each in its own order. float32 rounds a sum by 2⁻²⁴ of it at most; this is 64 times that, for the
 * largest entry is the end of many sums, and how a processor splits them is its own.
 */
const ROUNDING = 2 ** -18;
const expectRounded = (value: number, other: number) =>
  expect(Math.abs(value - other)).toBeLessThan(ROUNDING * Math.max(1, Math.abs(other)));

describe('a step that shares prompts', () => {
  test.each(LEARNER_CASES.map((one) => [one.name, one] as const))(
    '%s: the same gradients',
    async (_, one) => {
      const batch = withPrompts(one);
      const all = batch.updates.length > 1 ? Int32Array.from({ length: 12 }, (_, i) => i) : batch.updates[0]!;
      const step = stepping(one, { ...batch, updates: [all] });
      const [shared, apart] = [await step(true), await step(false)];
      // After one update the first moment is the gradient times 1 − β₁.
      const critic = (of: typeof apart) => of.state.critic?.firstMoments ?? new Map();
      if (one.objective) {
        expect(relative(apart.state.firstMoments, shared.state.firstMoments)).toBeLessThan(ROUNDING);
        expectRounded(shared.metrics.loss!, apart.metrics.loss!);
        expectRounded(shared.metrics.entropy!, apart.metrics.entropy!);
      }
      if (one.more?.critic) expect(relative(critic(apart), critic(shared))).toBeLessThan(ROUNDING);
      // Else there was nothing to compare.
      const moments = (of: typeof apart) => bytes(new Map([...of.state.firstMoments, ...critic(of)]));
      expect(moments(shared).equals(moments(apart))).toBe(false);
    },
  );

  test.each(['clipped, several updates', 'gspo, several updates', 'clipped with a critic'])(
    '%s: ends where the others end',
    async (name) => {
      const step = stepping(named(name), withPrompts(named(name)));
      const [shared, apart] = [await step(true), await step(false)];
      expect(shared.metrics.tokens).toBe(apart.metrics.tokens);
      expect(shared.metrics.gradientNorm).toBeCloseTo(apart.metrics.gradientNorm!, 3);
      // Adam divides by the size of a gradient: where that is all but zero its rounding shows.
      expect(relative(apart.state.weights, shared.state.weights)).toBeLessThan(1e-3);
    },
  );

  it('repeats to the bit, and without the setting has the bits of one that does not share', async () => {
    const step = stepping(named('clipped'), withPrompts(named('clipped')));
    const digest = async (shared?: boolean) => bytes((await step(shared)).state.weights);
    expect((await digest(true)).equals(await digest(true))).toBe(true);
    expect((await digest()).equals(await digest(false))).toBe(true);
  });

  it('is as far from the other in bfloat16 as that rounds', async () => {
    const step = stepping(named('clipped'), withPrompts(named('clipped')));
    const exact = (await step(false)).state.firstMoments;
    const [shared, apart] = [
      await step(true, { precision: 'bfloat16' }),
      await step(false, { precision: 'bfloat16' }),
    ];
    const rounding = relative(exact, apart.state.firstMoments);
    expect(relative(apart.state.firstMoments, shared.state.firstMoments)).toBeLessThan(2 * rounding);
    expect(rounding).toBeLessThan(0.1);
  });
});

test.each([0, 8])('scores with a top-k of %i are those without shared prompts', async (topK) => {
  const batch = withPrompts(named('clipped among kept ids'));
  const state = freshState(CASE_MODEL, lively(CASE_MODEL, 1));
  const critic = beginCritic(state);
  const head = critic.weights.get('value_head.weight')!;
  head.data.forEach((_, i) => (head.data[i] = Math.sin(i)));
  const model = { ...state, config: { ...CASE_MODEL, maxPositions: 96 }, critic };
  const score = (sharePrompts: boolean) =>
    learner.score(
      model,
      batch,
      { logprobs: { temperature: 0.9, topK }, values: true },
      { ...DEFAULT_COMPUTE, sharePrompts },
    );
  const [shared, apart] = [await score(true), await score(false)];
  for (const name of ['logprobs', 'values'] as const) {
    const largest = apart[name]!.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
    const difference = apart[name]!.reduce(
      (most, value, i) => Math.max(most, Math.abs(value - shared[name]![i]!)),
      0,
    );
    expect(largest).toBeGreaterThan(1);
    expect(difference / largest).toBeLessThan(ROUNDING);
  }
});

it('shares the prompts of these batches', async () => {
  const backend = await loadTensorflowBackend('cpu');
  const batch = withPrompts(named('clipped'));
  const all = Array.from({ length: 12 }, (_, i) => i);
  const positions = (sharePrompts: boolean) =>
    positionsIn(packing(backend, CASE_MODEL, { microBatchTokens: 0, sharePrompts }, batch, all)(all));
  expect(positions(true)).toBeLessThan(0.8 * positions(false));
});
