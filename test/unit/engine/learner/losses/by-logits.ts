import type { Tensor1D, Tensor2D } from '@tensorflow/tfjs';
import { expect } from 'vitest';
import type { TensorflowBackend } from '../../../../../engine/learner/tensorflow/backend.ts';
import type { TokenLoss } from '../../../../../engine/learner/losses/loss.ts';
import { tokenLogprobs } from '../../../../../engine/learner/model/token-logprobs.ts';

// Losses and their gradients by the logits, for what test/reference/methods has written down.

/** What PyTorch makes of a case. */
export interface Expected {
  loss: number;
  gradient: number[] | number[][];
  clipped?: number[];
  kl?: number[];
}

export interface ByLogits {
  loss: number;
  gradient: number[];
  clipped: ArrayLike<number>;
  kl: ArrayLike<number>;
}

/** The loss with its slope by each logit, as the learner's program has it: `logits` are hidden states, the head is 1. */
export function valueAndSlopes(
  backend: TensorflowBackend,
  given: { logits: number[][]; targets: number[]; mask: number[] },
  loss: Pick<TokenLoss, 'from' | 'entropyBonus' | 'compute'>,
  perToken: Record<string, Float32Array>,
): ByLogits {
  const { tf } = backend;
  const [rows, vocabulary] = [given.logits.length, given.logits[0]!.length];
  const mask = tf.tensor1d(given.mask);
  const { weights, ...inputs } = Object.fromEntries(
    Object.entries(perToken).map(([name, values]) => [name, tf.tensor1d(values)]),
  ) as { weights: Tensor1D };
  let clipped: ArrayLike<number> = [];
  let kl: ArrayLike<number> = [];
  const { value, grad } = tf.valueAndGrad((logits) => {
    const { logprobs, entropy } = tokenLogprobs(
      backend,
      tf.div<Tensor2D>(logits, loss.from.temperature),
      tf.eye(vocabulary),
      tf.tensor1d(given.targets, 'int32'),
      { entropyGradient: loss.entropyBonus !== 0 },
    );
    const counted = tf.mul<Tensor1D>(logprobs, mask);
    const result = loss.compute(tf, { ...inputs, logprobs: counted, weights });
    [clipped, kl] = [result.clipped.dataSync(), result.kl.dataSync()];
    if (loss.entropyBonus === 0) return result.loss;
    return tf.sub(result.loss, tf.mul(tf.sum(tf.mul(entropy, weights)), loss.entropyBonus));
  })(tf.tensor2d(given.logits, [rows, vocabulary]));
  return { loss: value.dataSync()[0]!, gradient: [...grad.dataSync()], clipped, kl };
}

export function largestDifference(a: ArrayLike<number>, b: readonly number[]): number {
  expect(a.length).toBe(b.length);
  return b.reduce((largest, value, i) => Math.max(largest, Math.abs(value - a[i]!)), 0);
}

export function compare(expected: Expected, result: ByLogits): void {
  expect(Math.abs(result.loss - expected.loss)).toBeLessThan(1e-5);
  const gradient = expected.gradient.flat();
  const largest = Math.max(...gradient.map(Math.abs));
  expect(largest).toBeGreaterThan(0);
  expect(largestDifference(result.gradient, gradient)).toBeLessThan(1e-4 * largest);
  if (expected.clipped) expect(Array.from(result.clipped)).toEqual(expected.clipped);
  if (expected.kl) expect(largestDifference(result.kl, expected.kl)).toBeLessThan(1e-5);
}
