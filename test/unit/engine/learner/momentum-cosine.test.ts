import { expect, test } from 'vitest';
import type { TrainState } from '../../../../engine/learner/contract.ts';
import type { Weights } from '../../../../core/model/config.ts';
import {
  freshState,
  GRPO,
  inUpdates,
  randomBatch,
  settings,
  withStreams,
} from '../../../support/engine/tiny.ts';
import { learnerOfFile } from './learner-of-file.ts';

const learner = await learnerOfFile('eager');
const plan = settings(GRPO);
const { beta1 } = plan.optimizer;

const numbersOf = (weights: Weights): number[] => [...weights.values()].flatMap(({ data }) => [...data]);
const dot = (a: readonly number[], b: readonly number[]): number =>
  a.reduce((sum, value, i) => sum + value * b[i]!, 0);

/** By the moments before and after an update: m' = β₁ m + (1 − β₁) g, of which the cosine has no use for the scale of g. */
function byHand(before: TrainState, after: TrainState): number {
  const moments = numbersOf(before.firstMoments);
  const gradient = numbersOf(after.firstMoments).map((value, i) => value - beta1 * moments[i]!);
  return dot(gradient, moments) / Math.sqrt(dot(gradient, gradient) * dot(moments, moments));
}

test('the cosine of gradient and momentum is that of the moments before and after, and null where there are none', async () => {
  const first = await learner.step(freshState(), randomBatch(6), plan);
  expect(first.metrics.gradientMomentumCosine).toBeNull();

  const along = await learner.step(first.state, randomBatch(6), plan);
  expect(along.metrics.gradientMomentumCosine).toBeCloseTo(byHand(first.state, along.state), 4);
  // The same batch again leads the same way, and one of the opposite advantages back.
  expect(along.metrics.gradientMomentumCosine).toBeGreaterThan(0.5);
  const batch = randomBatch(6);
  const advantages = batch.streams.advantages!.map((value) => -value);
  const back = await learner.step(first.state, withStreams(batch, { advantages }), plan);
  expect(back.metrics.gradientMomentumCosine).toBeCloseTo(byHand(first.state, back.state), 4);
  expect(back.metrics.gradientMomentumCosine).toBeLessThan(-0.5);
});

test('of several updates it is the mean, and an update without a gradient has none', async () => {
  // Without a ratio, each update is the same in a step of its own.
  const supervised = settings({ kind: 'supervised' });
  const { state } = await learner.step(freshState(), randomBatch(6), supervised);
  const batch = inUpdates(randomBatch(6, undefined, 5), { minibatch: 3 });
  const both = await learner.step(state, batch, supervised);
  const halves = [];
  let from = state;
  for (const update of batch.updates) {
    const one = await learner.step(from, { ...batch, updates: [update] }, supervised);
    halves.push(one.metrics.gradientMomentumCosine!);
    from = one.state;
  }
  expect(both.metrics.gradientMomentumCosine).toBeCloseTo((halves[0]! + halves[1]!) / 2, 4);

  const nothing = withStreams(batch, { advantages: batch.streams.advantages!.map(() => 0) });
  const still = await learner.step(state, nothing, plan);
  expect(still.metrics.gradientMomentumCosine).toBeNull();
});
