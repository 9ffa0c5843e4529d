import type { Tensor1D } from '@tensorflow/tfjs';
import type { ImportanceCorrection } from '../../../core/algorithms/objective.ts';
import type { Tf } from '../tensorflow/backend.ts';
import { customGradient } from '../tensorflow/custom-gradient.ts';
import { given } from './loss.ts';

/**
 * exp(target − samplerLogprobs) [N], truncated or masked by `importanceRule` and its bounds, `importanceCap` > 0; `target`
 * needs no gradient. The rule `difference` truncates it, and has `withinDifference` besides.
 */
export function importanceWeight(
  tf: Tf,
  target: Tensor1D,
  samplerLogprobs: Tensor1D,
  { importanceCap, importanceRule = 'truncate', importanceFloor }: ImportanceCorrection,
): Tensor1D {
  if (importanceRule !== 'mask') {
    const capped = tf.minimum<Tensor1D>(tf.exp<Tensor1D>(tf.sub(target, samplerLogprobs)), importanceCap);
    return importanceFloor === undefined ? capped : tf.maximum(capped, importanceFloor);
  }
  // In one piece, for a comparison has no gradient, not even of zero.
  return customGradient<[Tensor1D, Tensor1D], [], Tensor1D>(
    tf,
    (target, samplerLogprobs) => {
      const weight = tf.exp<Tensor1D>(tf.sub(target, samplerLogprobs));
      const within = tf.logicalAnd(
        tf.greaterEqual(weight, importanceFloor ?? 1 / importanceCap),
        tf.lessEqual(weight, importanceCap),
      );
      return { value: tf.where<Tensor1D>(within, weight, tf.zerosLike(weight)), saved: [] };
    },
    (dy) => [tf.zerosLike(dy), tf.zerosLike(dy)],
  )(target, samplerLogprobs);
}

/**
 * 1 [N] where a token may still be learnt from, and 0 where its probability has already moved from the one that it was
 * sampled with as far as its advantage would move it on: DPPO (Qi et al. 2026, arXiv 2602.04879), with the total variation
 * of the token against all others. It has no gradient.
 */
export const withinDifference = (
  tf: Tf,
  logprobs: Tensor1D,
  samplerLogprobs: Tensor1D,
  advantages: Tensor1D,
  { differenceLow, differenceHigh }: ImportanceCorrection,
): Tensor1D =>
  customGradient<[Tensor1D, Tensor1D, Tensor1D], [], Tensor1D>(
    tf,
    (logprobs, samplerLogprobs, advantages) => {
      const moved = tf.sub<Tensor1D>(tf.exp(logprobs), tf.exp(samplerLogprobs));
      const tooHigh = tf.logicalAnd(tf.greater(advantages, 0), tf.greater(moved, given(differenceHigh)));
      const tooLow = tf.logicalAnd(tf.less(advantages, 0), tf.less(moved, -given(differenceLow)));
      const within = tf.logicalNot<Tensor1D>(tf.logicalOr(tooHigh, tooLow));
      return { value: tf.cast<Tensor1D>(within, 'float32'), saved: [] };
    },
    (dy) => [tf.zerosLike(dy), tf.zerosLike(dy), tf.zerosLike(dy)],
  )(logprobs, samplerLogprobs, advantages);
