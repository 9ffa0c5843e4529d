import type { Tensor1D } from '@tensorflow/tfjs';
import { beforeAll, describe, expect, test } from 'vitest';
import type { ClippedObjective, ImportanceCorrection } from '../../../../../core/algorithms/objective.ts';
import { RandomStream } from '../../../../../core/random.ts';
import { clippedLoss } from '../../../../../engine/learner/losses/clipped.ts';
import type { LossResult } from '../../../../../engine/learner/losses/loss.ts';
import { reinforceLoss } from '../../../../../engine/learner/losses/reinforce.ts';
import {
  loadTensorflowBackend,
  type TensorflowBackend,
} from '../../../../../engine/learner/tensorflow/backend.ts';
import { GRPO } from '../../../../support/engine/tiny.ts';

let backend: TensorflowBackend;
beforeAll(async () => {
  backend = await loadTensorflowBackend('cpu');
});

/** Four tokens: probabilities now, under the weights that the step starts from, and when they were sampled. */
const now = [0.6, 0.3, 0.12, 0.3];
const proximal = [0.5, 0.3, 0.1, 0.4];
const behaviour = [0.2, 0.75, 0.1, 0.6];
const advantages = [1, 1, -1, -1];

/** dL/d log p of each token, where L is the sum over them. */
function slopesOf(correction: ImportanceCorrection, over: Partial<ClippedObjective> = {}): number[] {
  const { tf } = backend;
  const logs = (values: readonly number[]) => tf.tensor1d(values.map(Math.log));
  const slopes = tf.grad((x) => {
    const inputs = {
      old: logs(proximal),
      samplerLogprobs: logs(behaviour),
      advantages: tf.tensor1d(advantages),
    };
    const loss = clippedLoss(
      tf,
      { ...GRPO, ...correction, ...over },
      { ...inputs, logprobs: x.as1D(), weights: tf.ones([4]).as1D() },
    );
    return loss.loss;
  })(logs(now));
  return [...slopes.dataSync()];
}

/** Ratios to the proximal policy are 1.2, 1, 1.2 and 0.75, and the weights 2.5, 0.4, 1 and 2/3. */
const expectSlopes = (found: number[], expected: number[]) =>
  found.forEach((slope, i) => expect(slope, `token ${i}`).toBeCloseTo(expected[i]!, 5));

describe('the gradient of four tokens, by hand: −ρ r A, and 0 where r is clipped', () => {
  // The last one is clipped from below by 0.8: its advantage is negative.
  test('without a correction', () => expectSlopes(slopesOf({ importanceCap: 0 }), [-1.2, -1, 1.2, 0]));

  test('decoupled: the clip is to the proximal policy, and the weight is of it to the behaviour policy', () =>
    expectSlopes(slopesOf({ importanceCap: 100 }), [-2.5 * 1.2, -0.4, 1.2, 0]));

  test('truncated, from above and from both sides', () => {
    expectSlopes(slopesOf({ importanceCap: 2 }), [-2 * 1.2, -0.4, 1.2, 0]);
    expectSlopes(slopesOf({ importanceCap: 2, importanceFloor: 0.5 }), [-2 * 1.2, -0.5, 1.2, 0]);
  });

  test('masked: by 1 / cap and cap, and by a floor of its own (IcePop)', () => {
    expectSlopes(slopesOf({ importanceCap: 2, importanceRule: 'mask' }), [0, 0, 1.2, 0]);
    expectSlopes(slopesOf({ importanceCap: 5, importanceRule: 'mask' }), [-2.5 * 1.2, -0.4, 1.2, 0]);
    expectSlopes(slopesOf({ importanceCap: 5, importanceFloor: 0.5, importanceRule: 'mask' }), [
      -2.5 * 1.2,
      0,
      1.2,
      0,
    ]);
  });

  test('by the difference of probabilities (DPPO): π/μ, unless the token has moved on by more than 0.2', () => {
    const dppo = { importanceRule: 'difference', differenceLow: 0.2, differenceHigh: 0.2 } as const;
    // Of 0.4, −0.45, 0.02 and −0.3 the first and the last go where their advantage points.
    expectSlopes(slopesOf({ importanceCap: 100, ...dppo }), [0, -0.3 / 0.75, 0.12 / 0.1, 0]);
    // Other bounds let the first through, whose weight is truncated, and the last, whose ratio PPO would clip.
    const wide = { ...dppo, differenceLow: 0.35, differenceHigh: 0.5 };
    expectSlopes(slopesOf({ importanceCap: 2, ...wide }), [-2 * 1.2, -0.4, 1.2, 0.3 / 0.6]);
  });
});

test('in the only update of a step no clip binds, however stale the samples are: the gradient is that of REINFORCE', () => {
  const { tf } = backend;
  const logs = (values: readonly number[]) => tf.tensor1d(values.map(Math.log));
  const given = () => ({ samplerLogprobs: logs(behaviour), advantages: tf.tensor1d(advantages) });
  const slopes = (loss: (x: Tensor1D) => LossResult) => [
    ...tf
      .grad((x) => loss(x.as1D()).loss)(logs(now))
      .dataSync(),
  ];
  const inputs = (x: Tensor1D) => ({ ...given(), logprobs: x, weights: tf.ones([4]).as1D() });
  for (const correction of [
    { importanceCap: 100 },
    { importanceCap: 5, importanceFloor: 0.5, importanceRule: 'mask' },
  ] as const) {
    const { temperature, topK, aggregation, maxCompletionTokens } = GRPO;
    const of = { temperature, topK, aggregation, maxCompletionTokens };
    const reinforce = reinforceLoss({ kind: 'reinforce', ...of, ...correction });
    const clipped = slopes((x) => clippedLoss(tf, { ...GRPO, ...correction }, inputs(x)));
    expectSlopes(
      clipped,
      slopes((x) => reinforce.compute(tf, inputs(x))),
    );
    // Three times as likely as it was sampled, and still made likelier.
    expect(clipped[0]).toBeCloseTo(-3, 5);
  }
});

describe('on a bandit whose sampler is stale', () => {
  // Eight actions; the gradient by the logits of E_π[r], estimated from 64 draws of μ, 4,000 times.
  const logitsOf = (name: string, scale: number) => {
    const random = new RandomStream(3, name);
    return Array.from({ length: 8 }, () => scale * (2 * random.uniform() - 1));
  };
  const softmax = (logits: readonly number[]) => {
    const all = logits.map(Math.exp);
    const total = all.reduce((a, b) => a + b, 0);
    return all.map((one) => one / total);
  };
  const start = logitsOf('μ', 1.5);
  const drift = logitsOf('drift', 1.5);
  const [mu, pi] = [softmax(start), softmax(start.map((logit, a) => logit + drift[a]!))];
  const rewards = logitsOf('rewards', 1);
  const value = pi.reduce((sum, p, a) => sum + p * rewards[a]!, 0);
  const truth = pi.map((p, a) => p * (rewards[a]! - value));

  /** Squared bias and variance, summed over the logits, of the mean of weight · A ∇ log π. */
  function estimate(weigh: (weight: number, action: number) => number) {
    const random = new RandomStream(5, 'draws');
    const [draws, batches] = [64, 4000];
    const [sums, squares] = [pi.map(() => 0), pi.map(() => 0)];
    for (let batch = 0; batch < batches; batch++) {
      const gradient = pi.map(() => 0);
      for (let n = 0; n < draws; n++) {
        const u = random.uniform();
        let [action, below] = [0, mu[0]!];
        while (u >= below && action < 7) below += mu[++action]!;
        const scale = (weigh(pi[action]! / mu[action]!, action) * (rewards[action]! - value)) / draws;
        for (let a = 0; a < 8; a++) gradient[a]! += scale * (Number(a === action) - pi[a]!);
      }
      gradient.forEach((g, a) => {
        sums[a]! += g;
        squares[a]! += g * g;
      });
    }
    const means = sums.map((sum) => sum / batches);
    return {
      bias: means.reduce((sum, mean, a) => sum + (mean - truth[a]!) ** 2, 0),
      variance: squares.reduce((sum, square, a) => sum + square / batches - means[a]! ** 2, 0),
    };
  }
  const none = estimate(() => 1);
  const full = estimate((weight) => weight);
  const truncated = estimate((weight) => Math.min(weight, 2));
  const icepop = estimate((weight) => (weight >= 0.5 && weight <= 5 ? weight : 0));
  const dppo = estimate((weight, action) => {
    const [moved, advantage] = [pi[action]! - mu[action]!, rewards[action]! - value];
    return (advantage > 0 && moved > 0.2) || (advantage < 0 && moved < -0.2) ? 0 : weight;
  });

  test('the full weight has no bias that 4,000 batches show, and no weight has much', () => {
    expect(full.bias).toBeLessThan((9 * full.variance) / 4000);
    expect(none.bias).toBeGreaterThan(10 * full.bias);
  });

  test.each([
    ['truncation', truncated],
    ['IcePop', icepop],
  ])('%s has less variance than the full weight, and less bias than none', (_, corrected) => {
    expect(corrected.variance).toBeLessThan(full.variance);
    expect(corrected.bias).toBeLessThan(none.bias);
  });

  test('DPPO has no more variance than the full weight, for it only leaves out', () => {
    expect(dppo.variance).toBeLessThanOrEqual(full.variance);
  });
});
