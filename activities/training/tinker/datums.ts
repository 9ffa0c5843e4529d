import type { TinkerObjective } from './capabilities.ts';
import type { ImportanceCorrection } from '../../../core/algorithms/objective.ts';
import type { TrainBatch } from '../../../engine/learner/contract.ts';
import { LEAST_DOUBT } from '../../../engine/learner/losses/supervised.ts';
import type { TinkerDatum, TinkerTensor } from './protobuf.ts';
import { tokenWeights } from '../../../engine/learner/losses/token-weights.ts';

/**
 * How a server adds up the losses of tokens: `sum` as the API documents it, or `mean`, over the tokens of a sequence and then
 * over sequences, as SkyRL 0.3.0 in JAX does.
 */
export type Reduction = 'sum' | 'mean';

/** One update as the API has it. All that is given by token is [total] of the batch. */
export interface TinkerUpdate {
  loss: 'cross_entropy' | 'importance_sampling' | 'ppo' | 'cispo';
  clip?: { clip_low_threshold: number; clip_high_threshold: number };
  /** What each token weighs: Gradus' mean over tokens times its advantage. */
  weights: Float32Array;
  /** What tokens weigh in −log(1 − p), below 0 and [total]; the API has no such loss, and `weights` have its slope. */
  avoid?: Float32Array;
  /** Log-probs to which the ratio is taken; absent of cross entropy. */
  to?: Float32Array;
  /** Sequences that move the weights. */
  sequences: number[];
}

/**
 * The loss of an update by the API's own, with the same gradient (docs/batch.md has Gradus' equations): losses of the API are
 * sums over tokens, so what a token weighs in the mean is a factor of its advantage. `old` are log-probs under the weights
 * that the step starts from, `now` those of this moment, both [total].
 */
export function tinkerUpdate(
  objective: TinkerObjective,
  batch: TrainBatch,
  update: Int32Array,
  { old, now }: { old: Float32Array; now: Float32Array },
  reduction: Reduction,
): TinkerUpdate {
  const sequences = [...update];
  const mean =
    objective.kind === 'supervised' ? { aggregation: 'token' as const, maxCompletionTokens: 0 } : objective;
  const { advantages, samplerLogprobs } = batch.streams;
  const weights = tokenWeights(batch, sequences, mean).map((weight, i) => weight * advantages![i]!);
  const moving = sequences.filter((sequence) =>
    weights.subarray(batch.offsets[sequence], batch.offsets[sequence + 1]).some((weight) => weight !== 0),
  );
  const correct = (from: Float32Array, correction: ImportanceCorrection) =>
    correction.importanceCap === 0
      ? weights
      : weights.map((weight, i) =>
          weight === 0 ? 0 : weight * importance(from[i]! - samplerLogprobs![i]!, correction),
        );
  const common = { sequences: moving };
  switch (objective.kind) {
    case 'supervised': {
      if (!readsNow(objective, batch, reduction)) return { ...common, loss: 'cross_entropy', weights };
      const avoid = weights.map((weight) => Math.min(0, weight));
      const slopes = weights.map((weight, i) =>
        weight < 0 ? weight * (Math.exp(now[i]!) / doubt(now[i]!)) : weight,
      );
      return { ...common, loss: 'importance_sampling', weights: slopes, avoid, to: now };
    }
    case 'clipped':
      return {
        ...common,
        loss: 'ppo',
        clip: {
          clip_low_threshold: 1 - objective.clipRatioLow,
          clip_high_threshold: 1 + objective.clipRatioHigh,
        },
        weights: correct(old, objective),
        to: old,
      };
    case 'cispo':
      return {
        ...common,
        loss: 'cispo',
        clip: { clip_low_threshold: 0, clip_high_threshold: 1 + objective.clipRatioHigh },
        weights,
        to: old,
      };
    default:
      return { ...common, loss: 'importance_sampling', weights: correct(now, objective), to: now };
  }
}

/**
 * Whether a loss is taken from the log-probs of this moment. A mean over a sequence takes the weights of cross entropy out
 * again, and what is to become less likely has another slope: the ratio to what is now has the gradient of both, at ratio 1.
 */
export const readsNow = (objective: TinkerObjective, batch: TrainBatch, reduction: Reduction): boolean =>
  objective.kind === 'reinforce' ||
  (objective.kind === 'supervised' &&
    (reduction === 'mean' ||
      batch.streams.advantages!.some((weight, i) => weight < 0 && batch.mask[i] === 1)));

/** 1 − p of log p, held where our own learner holds it. */
const doubt = (logprob: number): number => Math.max(-Math.expm1(logprob), LEAST_DOUBT);

/** exp(difference) within its bounds: truncated, or 0 outside (see `ImportanceCorrection`). */
function importance(
  difference: number,
  { importanceCap: cap, importanceFloor: floor, importanceRule }: ImportanceCorrection,
): number {
  const weight = Math.exp(difference);
  if (importanceRule === 'mask') return weight >= (floor ?? 1 / cap) && weight <= cap ? weight : 0;
  return Math.max(floor ?? 0, Math.min(weight, cap));
}

/** What the loss is, of log-probs [total], and how many tokens the clip holds. */
export function lossOf(
  { loss, clip, weights, avoid, to, sequences }: TinkerUpdate,
  { offsets }: Pick<TrainBatch, 'offsets'>,
  logprobs: Float32Array,
): { loss: number; clipped: number } {
  let [sum, clipped] = [0, 0];
  for (const sequence of sequences) {
    for (let i = offsets[sequence]!; i < offsets[sequence + 1]!; i++) {
      const weight = weights[i]!;
      if (weight === 0) continue;
      // Importance is sampled at what is now: REINFORCE's loss and likelihood have that gradient, and are said as they are.
      const ratio = clip ? Math.exp(logprobs[i]! - to![i]!) : 1;
      const bounded = clip && Math.min(Math.max(ratio, clip.clip_low_threshold), clip.clip_high_threshold);
      if (avoid && avoid[i]! < 0) sum += avoid[i]! * Math.log(doubt(logprobs[i]!));
      else if (bounded === undefined) sum -= weight * logprobs[i]!;
      else if (loss === 'cispo') sum -= weight * bounded * logprobs[i]!;
      else sum -= Math.min(weight * ratio, weight * bounded);
      if (bounded !== undefined && (loss === 'cispo' ? bounded !== ratio : weight * bounded < weight * ratio))
        clipped++;
    }
  }
  return { loss: sum, clipped };
}

/** Each sequence as the API has it, its targets one place ahead of its input. */
export function datumsOf(
  { loss, weights, to, sequences }: Pick<TinkerUpdate, 'loss' | 'weights' | 'to' | 'sequences'>,
  { tokens, offsets }: Pick<TrainBatch, 'tokens' | 'offsets'>,
  reduction: Reduction,
): TinkerDatum[] {
  return sequences.map((sequence) => {
    const [start, end] = [offsets[sequence]!, offsets[sequence + 1]!];
    const targets = (values: ArrayLike<number>, times = 1) =>
      Array.from({ length: end - start - 1 }, (_, i) => times * values[start + i + 1]!);
    // The server divides by both.
    const times = reduction === 'sum' ? 1 : sequences.length * (end - start - 1);
    return {
      model_input: { chunks: [{ type: 'encoded_text', tokens: [...tokens.subarray(start, end - 1)] }] },
      loss_fn_inputs: {
        target_tokens: tensor('int64', targets(tokens)),
        ...(loss === 'cross_entropy'
          ? { weights: tensor('float32', targets(weights)) }
          : {
              logprobs: tensor('float32', targets(to!)),
              advantages: tensor('float32', targets(weights, times)),
            }),
      },
    };
  });
}

const tensor = (dtype: TinkerTensor['dtype'], data: number[]): TinkerTensor => ({
  data,
  dtype,
  shape: [data.length],
});
