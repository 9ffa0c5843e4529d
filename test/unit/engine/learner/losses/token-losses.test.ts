import { beforeAll, describe, expect, it } from 'vitest';
import {
  loadTensorflowBackend,
  type TensorflowBackend,
} from '../../../../../engine/learner/tensorflow/backend.ts';
import { clippedLoss } from '../../../../../engine/learner/losses/clipped.ts';
import { supervisedLoss } from '../../../../../engine/learner/losses/supervised.ts';
import { GRPO } from '../../../../support/engine/tiny.ts';

let backend: TensorflowBackend;
beforeAll(async () => {
  backend = await loadTensorflowBackend('cpu');
});

const p = [0.9, 0.2, 0.5, 0.05].map(Math.log);

describe('the supervised loss', () => {
  it('is negative log-likelihood for positive weights and unlikelihood for negative ones', () => {
    const { tf } = backend;
    const loss = supervisedLoss(tf, tf.tensor1d(p), tf.tensor1d([0.5, -2, 0, -1]));
    expect(loss.dataSync()[0]).toBeCloseTo(-0.5 * Math.log(0.9) - 2 * Math.log(0.8) - Math.log(0.95), 5);
  });

  it('keeps loss and slope finite for a token that is certain and unwanted', () => {
    const { tf } = backend;
    const { value, grad } = tf.valueAndGrad((x) => supervisedLoss(tf, x.as1D(), tf.tensor1d([-1])))(
      tf.tensor1d([0]),
    );
    expect(Number.isFinite(value.dataSync()[0])).toBe(true);
    expect(grad.dataSync()[0]).toBeCloseTo(1e5, -1);
  });
});

describe('the clipped loss', () => {
  const old = [0.5, 0.22, 0.5, 0.1].map(Math.log);
  const advantages = [1, -1, 2, -0.5];

  function expected(beta: number, cap: number, reference: number[], rollout: number[]) {
    return p.map((logp, i) => {
      const ratio = Math.exp(logp - old[i]!);
      const clipped = Math.min(Math.max(ratio, 0.8), 1.28);
      const surrogate = Math.min(ratio * advantages[i]!, clipped * advantages[i]!);
      const importance = cap > 0 ? Math.min(Math.exp(old[i]! - rollout[i]!), cap) : 1;
      const difference = reference[i]! - logp;
      return -importance * surrogate + beta * (Math.exp(difference) - difference - 1);
    });
  }

  it('is clip, importance correction and k3 as written in the papers', () => {
    const { tf } = backend;
    const reference = [-0.2, -1, -1, -2];
    const rollout = [-1, -1, -0.1, -5];
    const weights = [0.1, 0.2, 0.3, 0.4];
    const { loss, kl, clipped } = clippedLoss(
      tf,
      { ...GRPO, beta: 0.2, importanceCap: 2 },
      {
        logprobs: tf.tensor1d(p),
        weights: tf.tensor1d(weights),
        advantages: tf.tensor1d(advantages),
        old: tf.tensor1d(old),
        reference: tf.tensor1d(reference),
        samplerLogprobs: tf.tensor1d(rollout),
      },
    );
    const terms = expected(0.2, 2, reference, rollout);
    expect(loss.dataSync()[0]).toBeCloseTo(
      terms.reduce((sum, term, i) => sum + term * weights[i]!, 0),
      5,
    );
    // Ratios are 1.8, 0.9, 1 and 0.5: the first is above with a gain, the last below with a loss.
    expect([...clipped.dataSync()]).toEqual([1, 0, 0, 1]);
    const k3 = Math.exp(-0.2 - p[0]!) - (-0.2 - p[0]!) - 1;
    expect(kl.dataSync()[0]).toBeCloseTo(k3, 5);
  });

  it('has the policy gradient −A for its slope when old and current are the same', () => {
    const { tf } = backend;
    const slope = tf.grad((x) => {
      const logprobs = x.as1D();
      const weights = tf.ones([4]).as1D();
      return clippedLoss(tf, GRPO, { logprobs, weights, advantages: tf.tensor1d(advantages) }).loss;
    })(tf.tensor1d(p));
    expect([...slope.dataSync()]).toEqual([-1, 1, -2, 0.5]);
  });
});
