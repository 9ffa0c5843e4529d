import { describe, expect, it } from 'vitest';
import type { TrainState } from '../../../../engine/learner/contract.ts';
import { createLearner } from '../../../../engine/learner/process/remote-learner.ts';
import { initialAdapter } from '../../../../engine/lora/initial-adapter.ts';
import { mergeAdapter } from '../../../../engine/lora/merge-adapter.ts';
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

const lora = { rank: 4, alpha: 8, rsLora: false, targetModules: ['q_proj', 'v_proj', 'up_proj'] };
const begin = (): TrainState => ({
  ...freshState(),
  adapter: { lora, weights: initialAdapter(TINY, lora, 1) },
});
const copy = (state: TrainState): TrainState => structuredClone(state);
const batch = inUpdates(randomBatch(6), { minibatch: 3, epochs: 2 });
const plan = settings({ ...GRPO, beta: 0.1 });
const reference = lively(TINY, 2);
const digestOf = ({ adapter, firstMoments, secondMoments }: TrainState): Buffer =>
  Buffer.concat([bytes(adapter!.weights), bytes(firstMoments), bytes(secondMoments)]);

describe('a LoRA step', () => {
  it('changes the adapter and nothing else, and has moments for it alone', async () => {
    const parent = begin();
    const before = bytes(parent.weights);
    const { state } = await learner.step(parent, batch, plan, { reference });
    expect(state.weights).toBe(parent.weights);
    expect(bytes(state.weights).equals(before)).toBe(true);
    expect(largestDifference(state.adapter!.weights, parent.adapter!.weights)).toBeGreaterThan(1e-3);
    for (const given of [state.firstMoments, state.secondMoments]) {
      expect([...given.keys()]).toEqual([...parent.adapter!.weights.keys()]);
    }
  });

  it('learns a small batch by heart', async () => {
    let state = begin();
    const losses: number[] = [];
    const one = inUpdates(batch, {});
    const imitate = withStreams(one, { advantages: one.mask.map(() => 1) });
    for (let i = 0; i < 80; i++) {
      const step = await learner.step(state, imitate, settings({ kind: 'supervised' }));
      state = step.state;
      losses.push(step.metrics.loss!);
    }
    expect(losses.at(-1)!).toBeLessThan(0.6 * losses[0]!);
  });

  it('computes what its merged weights compute', async () => {
    let state = begin();
    for (let i = 0; i < 3; i++) ({ state } = await learner.step(state, batch, plan, { reference }));
    const merged = freshState(TINY, mergeAdapter(TINY, state.weights, state.adapter!));
    const once = settings({ ...GRPO, temperature: 0.8 });
    const whole = inUpdates(batch, {});
    const adapted = await learner.step(state, whole, once);
    const plain = await learner.step(merged, whole, once);
    // Log-probs under the parent, by way of their gap to the same rollout.
    expect(adapted.metrics.logprobGapMax).toBeCloseTo(plain.metrics.logprobGapMax!, 4);
    expect(adapted.metrics.logprobGapMean).toBeCloseTo(plain.metrics.logprobGapMean!, 5);
    expect(adapted.metrics.entropy).toBeCloseTo(plain.metrics.entropy!, 5);
  });

  it('goes on to the bit from a copy of its state, in this process or another', async () => {
    const first = await learner.step(begin(), batch, plan, { reference });
    const saved = copy(first.state);
    const second = await learner.step(first.state, batch, plan, { reference });
    const resumed = await learner.step(saved, batch, plan, { reference });
    expect(digestOf(resumed.state).equals(digestOf(second.state))).toBe(true);
    const other = await createLearner({ backend: 'cpu' });
    try {
      const there = await other.step(begin(), batch, plan, { reference });
      expect(bytes(there.state.weights).equals(bytes(first.state.weights))).toBe(true);
      const again = await other.step(there.state, batch, plan, { reference });
      expect(digestOf(again.state).equals(digestOf(second.state))).toBe(true);
    } finally {
      await other.close();
    }
  });

  it('goes from one base or adapter to another without mixing them', async () => {
    const expected = await learner.step(begin(), batch, plan, { reference });
    const otherBase = { ...begin(), weights: lively(TINY, 9) };
    const other = await learner.step(otherBase, batch, plan, { reference });
    expect(digestOf(other.state).equals(digestOf(expected.state))).toBe(false);
    await learner.step(freshState(), batch, plan, { reference });
    const again = await learner.step(begin(), batch, plan, { reference });
    expect(digestOf(again.state).equals(digestOf(expected.state))).toBe(true);
  });

  it('refuses an adapter of another model', async () => {
    const wrong = { lora, weights: initialAdapter({ ...TINY, hiddenSize: 8 }, lora, 1) };
    const step = learner.step({ ...freshState(), adapter: wrong }, batch, plan, { reference });
    await expect(step).rejects.toMatchObject({ boundary: 'learner', type: 'weights' });
  });
});
