import type { Tensor1D } from '@tensorflow/tfjs';
import type { Tf } from '../backend.ts';
import { stopGradient } from '../custom-gradient.ts';
import type { Loss, LossInputs, LossResult, SampledFrom } from './loss.ts';
import { tokenWeights } from './token-weights.ts';
import type { TokenMean } from './token-weights.ts';

/**
 * GRPO (Shao et al. 2024, eq. 3) with the clip of PPO, asymmetric as in DAPO (Yu et al. 2025), and the K3 estimator of the
 * KL (Schulman 2020). With `topK` a token was sampled among so many at most, those of `TrainBatch.kept`, and all
 * log-probs, ratios, KLs and entropies are of the softmax over the same ones (keep sampling mask, DeepSeek-V3.2, 2025);
 * 0: nothing was cut.
 */
export interface GrpoSettings extends TokenMean, SampledFrom {
  kind: 'grpo';
  clipRatioLow: number;
  clipRatioHigh: number;
  /** Weight of KL(policy ‖ reference); 0 leaves the reference out of the computation. */
  beta: number;
  /** Caps exp(old log-prob − rollout log-prob) (TIS); 0 leaves the correction out. */
  importanceCap: number;
}

export const grpo = (settings: GrpoSettings): Loss => ({
  from: { temperature: settings.temperature, topK: settings.topK },
  ofSamples: true,
  needs: ['advantages', ...(settings.importanceCap > 0 ? (['rollout'] as const) : [])],
  movesAll: settings.beta > 0,
  reads: (single) => [
    'advantages',
    ...(single ? [] : (['old'] as const)),
    ...(settings.importanceCap > 0 ? (['rollout'] as const) : []),
    ...(settings.beta > 0 ? (['reference'] as const) : []),
  ],
  weights: (batch, sequences) => tokenWeights(batch, sequences, settings),
  compute: (tf, inputs) => grpoLoss(tf, settings, inputs),
});

/**
 * GRPO (Shao et al. 2024, "DeepSeekMath", eq. 3), to be minimized: the sum over tokens of
 * w · (−ρ · min(r A, clip(r, 1 − low, 1 + high) A) + β k3), where r = exp(log p − old) and
 * - w is 1 / (tokens that the mean is over) where the token counts, 0 elsewhere,
 * - `old` is absent where this is the step's first and only update: it equals log p then,
 * - the two bounds of the clip are DAPO's clip-higher (Yu et al. 2025, eq. 10),
 * - ρ = min(exp(old − rollout), cap) corrects for an engine that sampled with slightly other probabilities
 *   (truncated importance sampling, Yao et al. 2025; Ionides 2008),
 * - k3 = exp(ref − log p) − (ref − log p) − 1 estimates KL(policy ‖ reference) (Schulman 2020; eq. 4 of DeepSeekMath).
 */
export function grpoLoss(tf: Tf, settings: GrpoSettings, inputs: LossInputs): LossResult {
  const { logprobs, weights } = inputs;
  const advantages = given(inputs.advantages);
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
