import type { Scalar, Tensor1D } from '@tensorflow/tfjs';
import type { Tf } from '../backend.ts';
import type { GrpoSettings } from '../contract.ts';
import { stopGradient } from '../custom-gradient.ts';

/** What the loss reads, all [N]; log-probs and advantages are 0 where the weight is, for Inf · 0 is NaN. */
export interface GrpoInputs {
  logprobs: Tensor1D;
  /** 1 / (tokens that the mean is over) where the token counts, 0 elsewhere. */
  weights: Tensor1D;
  advantages: Tensor1D;
  /** Log-probs under the weights that the step started from; absent: this is its first and only update, and they equal `logprobs`. */
  old?: Tensor1D;
  /** Log-probs when sampled; needed when `importanceCap` > 0. */
  rollout?: Tensor1D;
  /** Log-probs under the reference; needed when `beta` > 0. */
  reference?: Tensor1D;
}

/**
 * GRPO (Shao et al. 2024, "DeepSeekMath", eq. 3), to be minimized: the sum over tokens of
 * w · (−ρ · min(r A, clip(r, 1 − low, 1 + high) A) + β k3), where r = exp(log p − old) and
 * - the two bounds of the clip are DAPO's clip-higher (Yu et al. 2025, eq. 10),
 * - ρ = min(exp(old − rollout), cap) corrects for an engine that sampled with slightly other probabilities
 *   (truncated importance sampling, Yao et al. 2025; Ionides 2008),
 * - k3 = exp(ref − log p) − (ref − log p) − 1 estimates KL(policy ‖ reference) (Schulman 2020; eq. 4 of DeepSeekMath).
 * Returns with it k3 and whether the clip bound, per token [N], for the metrics.
 */
export function grpoLoss(
  tf: Tf,
  settings: GrpoSettings,
  inputs: GrpoInputs,
): { loss: Scalar; kl: Tensor1D; clipped: Tensor1D } {
  const { logprobs, weights, advantages } = inputs;
  const old = inputs.old ?? stopGradient(tf, logprobs);
  const ratio = tf.exp(tf.sub(logprobs, old));
  const plain = tf.mul(ratio, advantages);
  const bounded = tf.mul(
    tf.clipByValue(ratio, 1 - settings.clipRatioLow, 1 + settings.clipRatioHigh),
    advantages,
  );
  let terms = tf.neg(tf.minimum(plain, bounded));
  if (settings.importanceCap > 0) {
    const importance = tf.minimum(tf.exp(tf.sub(old, given(inputs.rollout))), settings.importanceCap);
    terms = tf.mul(terms, importance);
  }
  let kl = tf.zerosLike(logprobs);
  if (settings.beta > 0) {
    const difference = tf.sub(given(inputs.reference), logprobs);
    kl = tf.sub(tf.expm1(difference), difference);
    terms = tf.add(terms, tf.mul(kl, settings.beta));
  }
  const clipped = tf.cast<Tensor1D>(tf.less(bounded, plain), 'float32');
  return { loss: tf.sum(tf.mul(terms, weights)), kl, clipped };
}

function given(tensor: Tensor1D | undefined): Tensor1D {
  if (!tensor) throw new TypeError('GRPO lacks log-probs that its settings ask for');
  return tensor;
}
