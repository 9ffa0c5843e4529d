import { describe, expect, it } from 'vitest';
import type { DistillObjective, Divergence } from '../../../../../core/algorithms/objective.ts';
import { normal, randomKey } from '../../../../../core/random.ts';
import type { Teacher, TrainBatch } from '../../../../../engine/learner/contract.ts';
import { createLearner } from '../../../../../engine/learner/process/remote-learner.ts';
import { initialAdapter } from '../../../../../engine/lora/initial-adapter.ts';
import { weightShapes, type Weights } from '../../../../../core/model/config.ts';
import { learnerOfFile } from '../learner-of-file.ts';
import {
  bytes,
  freshState,
  largestDifference,
  lively,
  randomBatch,
  settings,
  TINY,
} from '../../../../support/engine/tiny.ts';

const learner = await learnerOfFile();

const batch = randomBatch(5);
const divergences: Divergence[] = [
  { kind: 'reverse-kl' },
  { kind: 'reverse-kl-each' },
  { kind: 'forward-kl' },
  { kind: 'jsd', beta: 0.3 },
];
const objective = (divergence: Divergence, teacherWeights = [1]): DistillObjective => ({
  kind: 'distill',
  divergence,
  temperature: 0.8,
  aggregation: 'token',
  maxCompletionTokens: 30,
  teacherWeights,
});
/** Of another shape than the student, and of its vocabulary. */
const WIDER = { ...TINY, hiddenSize: 24, layers: 1, headSize: 6, tieEmbeddings: true };
const wider: Teacher = { config: WIDER, weights: lively(WIDER, 3) };
const alike: Teacher = { config: TINY, weights: lively(TINY, 5) };
const descent = {
  learningRate: 1e2,
  warmupUpdates: 0,
  beta1: 0,
  beta2: 0,
  epsilon: 1e6,
  maxGradientNorm: 0,
};
const step = (teachers: Teacher[], plan: DistillObjective, given: TrainBatch = batch, weights?: Weights) =>
  learner.step(freshState(TINY, weights), given, settings(plan, { optimizer: descent }), { teachers });

describe.each(divergences)('distillation by $kind', (divergence) => {
  it('has the gradient of finite differences through the whole model, with two teachers', async () => {
    const plan = objective(divergence, [0.25, 0.75]);
    const before = freshState().weights;
    const { state } = await step([wider, alike], plan);
    for (const [name, shape] of weightShapes(TINY)) {
      const { data } = before.get(name)!;
      const gradient = data.map((value, i) => (value - state.weights.get(name)!.data[i]!) / 1e-4);
      const key = randomKey('distill', name);
      const direction = data.map((_, i) => normal(key, i));
      const norm = Math.hypot(...direction);
      const lossAt = async (by: number) => {
        const moved = data.map((value, i) => value + (by * direction[i]!) / norm);
        const weights = new Map([...before, [name, { shape, data: moved }] as const]);
        return (await step([wider, alike], plan, batch, weights)).metrics.loss!;
      };
      const h = 4e-3;
      const slope = ((await lossAt(h)) - (await lossAt(-h))) / (2 * h);
      const derivative = direction.reduce((sum, value, i) => sum + value * gradient[i]!, 0) / norm;
      expect(Math.abs(derivative - slope), name).toBeLessThan(2e-3 + 0.02 * Math.abs(slope));
    }
  });

  it('teaches nothing where the student is its teacher, and brings it nearer to another', async () => {
    const itself = await step([{ config: TINY, weights: freshState().weights }], objective(divergence));
    expect(Math.abs(itself.metrics.loss!)).toBeLessThan(1e-6);
    expect(itself.metrics.gradientNorm).toBeLessThan(1e-5);
    let state = freshState();
    const losses: number[] = [];
    for (let i = 0; i < 30; i++) {
      const done = await learner.step(state, batch, settings(objective(divergence)), { teachers: [wider] });
      state = done.state;
      losses.push(done.metrics.loss!);
      expect(done.metrics.kl).toBeCloseTo(done.metrics.loss!, 4);
    }
    expect(losses.at(-1)!).toBeLessThan(0.5 * losses[0]!);
  });

  it('follows the teacher that a sequence names, and all by weight where it names none', async () => {
    const both = objective(divergence, [0.5, 0.5]);
    const named = (teacher: number) =>
      step([wider, alike], both, {
        ...batch,
        sequences: { teacher: new Float32Array(5).fill(teacher) },
      });
    const mixture = await step([wider, alike], both);
    expect((await named(-1)).metrics.loss).toBe(mixture.metrics.loss);
    for (const [index, teacher] of [wider, alike].entries()) {
      const alone = await step([teacher], objective(divergence));
      const of = await named(index);
      expect(of.metrics.loss).toBeCloseTo(alone.metrics.loss!, 5);
      expect(largestDifference(of.state.weights, alone.state.weights)).toBeLessThan(1e-7);
    }
    await expect(named(2)).rejects.toMatchObject({ type: 'batch' });
  });
});

it('trains an adapter alone, and in another process gives the same bits', async () => {
  const lora = { rank: 2, alpha: 4, rsLora: false, targetModules: ['q_proj' as const, 'down_proj' as const] };
  const begin = () => ({ ...freshState(), adapter: { lora, weights: initialAdapter(TINY, lora, 1) } });
  const plan = settings(objective({ kind: 'reverse-kl' }));
  const first = await learner.step(begin(), batch, plan, { teachers: [alike] });
  expect(first.metrics.gradientNorm).toBeGreaterThan(0);
  const second = await learner.step(first.state, batch, plan, { teachers: [alike] });
  const other = await createLearner({ backend: 'cpu' });
  try {
    const there = await other.step(begin(), batch, plan, { teachers: [alike] });
    const again = await other.step(there.state, batch, plan, { teachers: [alike] });
    expect(bytes(again.state.adapter!.weights).equals(bytes(second.state.adapter!.weights))).toBe(true);
  } finally {
    await other.close();
  }
});

it('refuses weights that are no shares, and a teacher of another vocabulary', async () => {
  const expected = { boundary: 'learner', type: 'settings' };
  const kl = { kind: 'reverse-kl' } as const;
  await expect(step([], objective(kl))).rejects.toMatchObject(expected);
  await expect(step([wider, alike], objective(kl, [0.5, 0.6]))).rejects.toMatchObject(expected);
  const config = { ...TINY, vocabSize: 20 };
  await expect(step([{ config, weights: lively(config, 1) }], objective(kl))).rejects.toMatchObject(expected);
  const broken = { config: TINY, weights: lively(TINY, 1) };
  broken.weights.get('lm_head.weight')!.data[0] = NaN;
  await expect(step([broken], objective(kl))).rejects.toMatchObject({
    type: 'diverged',
    message: expect.stringContaining('the weights of a teacher are broken') as string,
  });
});
