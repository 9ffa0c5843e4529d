import type { Tensor1D } from '@tensorflow/tfjs';
import type { ClippedObjective } from '../../../core/algorithms/objective.ts';
import type { Tf } from '../tensorflow/backend.ts';
import { stopGradient } from '../tensorflow/custom-gradient.ts';
import { importanceWeight, withinDifference } from './importance-weight.ts';
import { given } from './loss.ts';
import type { LossInputs, LossResult, TokenLoss } from './loss.ts';
import { tokenWeights } from './token-weights.ts';

/**
 * The clipped surrogate of PPO (Schulman et al. 2017, eq. 7), asymmetric as in DAPO (Yu et al. 2025), with GRPO's KL to a
 * reference (Shao et al. 2024, "DeepSeekMath", eq. 3) by the k3 estimator (Schulman 2020), or REINFORCE++'s by k2 (Hu 2025). With `topK` a token was
 * sampled among so many at most, those of `TrainBatch.kept`, and all log-probs, ratios, KLs and entropies are of the
 * softmax over the same ones (keep sampling mask, DeepSeek-V3.2, 2025); 0: nothing was cut.
 */
export const clipped = (settings: ClippedObjective): TokenLoss => ({
  kind: 'token',
  key: JSON.stringify(settings),
  from: { temperature: settings.temperature, topK: settings.topK },
  ofSamples: true,
  clips: true,
  needs: ['advantages', ...(settings.importanceCap > 0 ? (['samplerLogprobs'] as const) : [])],
  movesAll: settings.beta > 0 || (settings.entropyBonus ?? 0) !== 0,
  reads: (single) => [
    'advantages',
    ...(single ? [] : (['old'] as const)),
    ...(settings.importanceCap > 0 ? (['samplerLogprobs'] as const) : []),
    ...(settings.beta > 0 ? (['reference'] as const) : []),
  ],
  entropyBonus: settings.entropyBonus ?? 0,
  weights: (batch, sequences) => tokenWeights(batch, sequences, settings),
  compute: (tf, inputs) => clippedLoss(tf, settings, inputs),
});

/**
 * To be minimized: the sum over tokens of w · (−ρ · min(r A, clip(r, 1 − low, 1 + high) A) + β KL), where
 * r = exp(log p − old) and
 * - w is 1 / (tokens that the mean is over) where the token counts, 0 elsewhere,
 * - `old` is absent where this is the step's first and only update: it equals log p then,
 * - the two bounds of the clip are DAPO's clip-higher (Yu et al. 2025, eq. 10),
 * - ρ, of exp(old − samplerLogprobs), corrects for an engine, or for weights, that sampled with other probabilities. With
 *   several updates a step the objective is the decoupled one: the clip is to the weights that the step starts from, the
 *   proximal policy, and the weight is of these to the behaviour policy (Hilton et al. 2022; AReaL, Fu et al. 2025),
 * - by the rule `difference` the surrogate is M r A in the place of the minimum: M, of log p and samplerLogprobs, is DPPO's
 *   mask, and no ratio is clipped,
 * - KL is k3, or k2 = ½ (log p − ref)² where the settings say so; k3 is what is reported,
 * - k3 = exp(ref − log p) − (ref − log p) − 1 estimates KL(policy ‖ reference) (Schulman 2020; eq. 4 of DeepSeekMath).
 */
export function clippedLoss(tf: Tf, settings: ClippedObjective, inputs: LossInputs): LossResult {
  const { logprobs, weights } = inputs;
  const advantages = given(inputs.advantages);
  const old = inputs.old ?? stopGradient(tf, logprobs);
  const ratio = tf.exp<Tensor1D>(tf.sub(logprobs, old));
  const plain = tf.mul<Tensor1D>(ratio, advantages);
  const { surrogate, clipped } =
    settings.importanceCap > 0 && settings.importanceRule === 'difference'
      ? byDifference(tf, settings, plain, inputs)
      : byRatio(tf, settings, plain, ratio, advantages);
  let terms = tf.neg(surrogate);
  if (settings.importanceCap > 0) {
    terms = tf.mul(terms, importanceWeight(tf, old, given(inputs.samplerLogprobs), settings));
  }
  let kl = tf.zerosLike(logprobs);
  if (settings.beta > 0) {
    const difference = tf.sub(given(inputs.reference), logprobs);
    kl = tf.sub(tf.expm1(difference), difference);
    const inLoss = settings.klEstimator === 'k2' ? tf.mul(tf.square(difference), 0.5) : kl;
    terms = tf.add(terms, tf.mul(inLoss, settings.beta));
  }
  return { loss: tf.sum(tf.mul(terms, weights)), kl, clipped };
}

/** What is maximized, [N], and 1 where a token has left the trust region. */
interface Surrogate {
  surrogate: Tensor1D;
  clipped: Tensor1D;
}

/** min(r A, clip(r, 1 − low, 1 + high) A). */
function byRatio(
  tf: Tf,
  { clipRatioLow, clipRatioHigh }: ClippedObjective,
  plain: Tensor1D,
  ratio: Tensor1D,
  advantages: Tensor1D,
): Surrogate {
  const bounded = tf.mul<Tensor1D>(tf.clipByValue(ratio, 1 - clipRatioLow, 1 + clipRatioHigh), advantages);
  return { surrogate: tf.minimum(plain, bounded), clipped: tf.cast(tf.less(bounded, plain), 'float32') };
}

/** M r A. */
function byDifference(
  tf: Tf,
  settings: ClippedObjective,
  plain: Tensor1D,
  { logprobs, samplerLogprobs, advantages }: LossInputs,
): Surrogate {
  const within = withinDifference(tf, logprobs, given(samplerLogprobs), given(advantages), settings);
  return { surrogate: tf.mul(plain, within), clipped: tf.sub(1, within) };
}
