import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { loadTensorflowBackend } from '../../../../../../engine/learner/tensorflow/backend.ts';
import type { Learner } from '../../../../../../engine/learner/contract.ts';
import { createLocalLearner } from '../../../../../../engine/learner/local-learner.ts';
import {
  freshState,
  GRPO,
  inUpdates,
  largestDifference,
  lively,
  randomBatch,
  settings,
  TINY,
} from '../../../../../support/engine/tiny.ts';

let eager: Learner;
let traced: Learner;
beforeAll(async () => {
  eager = await createLocalLearner({ backend: 'cpu', mode: 'eager' });
  traced = await createLocalLearner({ backend: 'cpu', mode: 'traced' });
});
afterAll(async () => {
  await eager.close();
  await traced.close();
});

const cases = [
  ['supervised', settings({ kind: 'supervised' }), { minibatch: 4 }, TINY],
  ['GRPO in one update', settings({ ...GRPO, importanceCap: 2, temperature: 0.9 }), {}, TINY],
  [
    'GRPO in many updates with a reference and tied embeddings',
    settings({ ...GRPO, importanceCap: 2, beta: 0.1 }),
    { minibatch: 5, epochs: 2 },
    { ...TINY, tieEmbeddings: true },
  ],
] as const;

for (const [what, plan, updates, config] of cases) {
  it(`a traced step gives the numbers of an eager one: ${what}`, async () => {
    const batch = inUpdates(randomBatch(11, config), updates);
    const reference = lively(config, 2);
    const a = await eager.step(freshState(config, lively(config, 1)), batch, plan, { reference });
    const b = await traced.step(freshState(config, lively(config, 1)), batch, plan, { reference });
    for (const part of ['firstMoments', 'secondMoments'] as const) {
      expect(largestDifference(a.state[part], b.state[part])).toBeLessThan(1e-6);
    }
    // Adam divides by √v, which turns a rounding error of a tiny gradient into a part of the rate.
    expect(largestDifference(a.state.weights, b.state.weights)).toBeLessThan(1e-3);
    const {
      seconds: _,
      logprobGapByPosition: bins,
      logprobGapByLength: __,
      effectiveSamples,
      ...figures
    } = a.metrics;
    expect(b.metrics.effectiveSamples === undefined).toBe(effectiveSamples === undefined);
    for (const [of, value] of Object.entries(effectiveSamples ?? {}))
      expect(b.metrics.effectiveSamples![of as 'tokens' | 'sequences'], of).toBeCloseTo(value, 5);
    for (const [name, value] of Object.entries(figures))
      expect(b.metrics[name as keyof typeof figures], name).toBeCloseTo(value as number, 5);
    for (const [i, { mean, ...bin }] of (bins ?? []).entries()) {
      expect(b.metrics.logprobGapByPosition![i]).toMatchObject(bin);
      expect(b.metrics.logprobGapByPosition![i]!.mean).toBeCloseTo(mean, 5);
    }
  });
}

it('leaves no tensors behind', async () => {
  const { tf } = await loadTensorflowBackend('cpu');
  const batch = randomBatch(9, TINY, 4);
  for (const learner of [eager, traced]) {
    for (const [given, plan] of [
      [batch, settings({ kind: 'supervised' })],
      [inUpdates(batch, { minibatch: 4 }), settings({ ...GRPO, beta: 0.1 })],
    ] as const) {
      const counts: number[] = [];
      for (let i = 0; i < 3; i++) {
        await learner.step(freshState(), given, plan, { reference: lively(TINY, 2) });
        counts.push(tf.memory().numTensors);
      }
      expect(counts[2]).toBe(counts[1]);
    }
  }
});

it('keeps a graph for the next step of the same shape', async () => {
  const { tf } = await loadTensorflowBackend('cpu');
  const { node } = tf as unknown as { node: { loadSavedModel(path: string): Promise<unknown> } };
  const loads = vi.spyOn(node, 'loadSavedModel');
  const batch = randomBatch(12, TINY, 9);
  const plan = settings({ ...GRPO, clipRatioLow: 0.11 });
  const first = await traced.step(freshState(), batch, plan);
  const once = loads.mock.calls.length;
  expect(once).toBeGreaterThan(0);
  await traced.step(first.state, batch, plan);
  expect(loads.mock.calls.length).toBe(once);
});
