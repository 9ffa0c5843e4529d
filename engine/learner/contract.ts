import type { LearnerMetrics as TrainMetrics, RewardModelLoss } from '../../core/requests/learner.ts';
import type { LearnerSpec } from '../../core/schema/learner.ts';
import type { LoraAdapter } from '../lora/adapter.ts';
import type { ModelConfig, Weights } from '../../core/model/config.ts';
import type { Objective, OfSamples } from '../../core/algorithms/objective.ts';

/**
 * What a batch may say of each token: `advantages` weigh it in the loss (the example's weight for `supervised`, negative:
 * make it less likely), `samplerLogprobs` and `reference` are its log-probs when it was sampled and under the reference,
 * `values` and `returns` what a critic expected before it and is to expect; log-probs at the objective's temperature.
 * `staleness` is by how many learner steps the weights that the step starts from are ahead of those that have sampled it, or
 * −1 where that is not known: where several have sampled one sequence, and in the place of what is said of sequences.
 */
export const TOKEN_STREAMS = [
  'advantages',
  'samplerLogprobs',
  'reference',
  'values',
  'returns',
  'staleness',
] as const;
export type TokenStream = (typeof TOKEN_STREAMS)[number];

/**
 * What a batch may say of each sequence: `late` 1 where other weights than those that the step starts from have sampled
 * it, else 0; `pair` the number of the pair that it is half of, or −1; `label` 1 where it is preferred or desirable, −1
 * where it is not, 0 where it is only compared with; `teacher` the number of the teacher that it follows, or −1 for all
 * of them by weight; `episode` the number of the episode that it is a branch of, or −1: in a mean over sequences those of one
 * episode are one; `staleness` by how many learner steps the weights that the step starts from are ahead of those that
 * have sampled it, or −1 where that is not known.
 */
export const SEQUENCE_STREAMS = ['late', 'pair', 'label', 'teacher', 'episode', 'staleness'] as const;
export type SequenceStream = (typeof SEQUENCE_STREAMS)[number];

/**
 * N sequences laid end to end, and what to do with them. `tokens` [total]; sequence i is
 * `tokens[offsets[i] .. offsets[i + 1])`, `offsets` [N + 1]. The other arrays [total] speak of the token at the same
 * position as a *target*: `mask` 1 where the loss counts it (sampled by the policy, or demonstrated), 0 for prompts and
 * observations. In a file it is `gradus.batch/2` (docs/batch.md).
 */
export interface TrainBatch {
  tokens: Int32Array;
  offsets: Int32Array;
  mask: Float32Array;
  /** [total] each. */
  streams: Partial<Record<TokenStream, Float32Array>>;
  /** [N] each. Without `late` none is such. */
  sequences: Partial<Record<SequenceStream, Float32Array>>;
  /** What a cut of the sampling has left each token [total]; absent: there was none. */
  kept?: SamplingMask;
  /** The sequences of each optimizer update, in order: a learner shuffles nothing and cuts nothing. */
  updates: readonly Int32Array[];
}

/** Token i was sampled among `ids[offsets[i] .. offsets[i + 1])`, ascending, offsets [total + 1]; among all where there are none. */
export interface SamplingMask {
  ids: Int32Array;
  offsets: Int32Array;
}

/** What scoring reads of a batch. */
export type ScoredBatch = Pick<TrainBatch, 'tokens' | 'offsets' | 'mask' | 'kept'>;

/** Adam, Kingma & Ba 2015, with linear warm-up of the rate and a clip of the global gradient norm. */
export interface OptimizerSettings {
  learningRate: number;
  warmupUpdates: number;
  beta1: number;
  beta2: number;
  epsilon: number;
  /** Largest global L2 norm of the gradient; 0 leaves it alone. */
  maxGradientNorm: number;
}

/** A critic learns beside the policy: after each update of the policy it has one on the same sequences. */
export interface CriticSettings {
  /** Of a reward model, which is a critic whose values are logits. Absent: the squared error of returns. */
  loss?: RewardModelLoss | undefined;
  /** How far a value may move from `values` of the batch, in units of reward, before it is held (Engstrom et al. 2020); 0: as far as it does. */
  clip: number;
  optimizer: OptimizerSettings;
}

export interface TrainSettings {
  /** null: the critic alone is trained. */
  objective: Objective | null;
  optimizer: OptimizerSettings;
  critic?: CriticSettings | undefined;
  /** `DEFAULT_COMPUTE` where it is absent. */
  compute?: ComputeSettings;
  /** Mean |learner − sampler| log-prob above which nothing is updated, nats. Absent: no bound. */
  maxLogprobGap?: number | undefined;
  /**
   * The new state comes without the moments of what this step trains, which stay with the learner for its next step. A
   * learner that returns them all the same is right, too.
   */
  withoutMoments?: boolean | undefined;
}

export type ComputeSettings = LearnerSpec;

export const DEFAULT_COMPUTE: ComputeSettings = {
  precision: 'float32',
  gradientCheckpointing: false,
  microBatchTokens: 0,
};

export interface TrainState {
  config: ModelConfig;
  /** With an adapter they are its base, and never change. */
  weights: Weights;
  /** With one, it alone is trained. */
  adapter?: LoraAdapter;
  /** First and second moments under the names of what is trained; empty before the first update. */
  firstMoments: Weights;
  secondMoments: Weights;
  /** There are moments, but the learner that made this state has them, until it makes another step: both maps are empty. */
  withoutMoments?: true;
  /** Optimizer updates done so far. */
  updates: number;
  critic?: CriticState;
}

/**
 * A network of the policy's shape that predicts returns: weights under the policy's names, and `value_head.weight` [1, d]
 * and `value_head.bias` [1]. All of it is trained, also beside an adapter. It begins as a copy of the policy under a head
 * of zeros, with the first step that trains one; a step that trains none leaves none behind it.
 */
export interface CriticState {
  weights: Weights;
  firstMoments: Weights;
  secondMoments: Weights;
  /** As of the policy. */
  withoutMoments?: true;
  updates: number;
}

export type { LearnerMetrics as TrainMetrics } from '../../core/requests/learner.ts';

/** Models that a step reads beside the one that it trains. */
export interface OtherModels {
  /** What the policy is held to or compared with: needed where the loss reads it and the batch has no log-probs of it. */
  reference?: Weights | undefined;
  /** In the order of the objective's weights; their vocabulary is the policy's. */
  teachers?: readonly Teacher[] | undefined;
}

export interface Teacher {
  config: ModelConfig;
  weights: Weights;
}

/** What of a batch is scored, and of what: log-probs of the tokens, values of the states before them. */
export interface ScoreQuery {
  logprobs?: OfSamples | undefined;
  values?: boolean | undefined;
}

/** [total] each, 0 where the mask is 0. A model without critic has values of 0, as one has that begins. */
export interface LearnerScores {
  logprobs?: Float32Array;
  values?: Float32Array;
}

/**
 * A step is a pure function of its arguments, repeatable to the bit on the same backend.
 * An aborted `signal` rejects with its reason, as soon as the learner can be stopped.
 * Throws GradusError('learner', …): `diverged` when a loss, a gradient or a log-prob that is learnt from is not finite,
 * `batch` when a batch is malformed, lacks a stream or does not fit the model, `weights` when these do not have the shapes
 * of the configuration, `settings` when they contradict each other or lack a model, `precision` where this backend has
 * none such, `logprob-gap` where what the sampler said of its tokens is further from the weights than the settings allow,
 * `moments-gone` where the parent is without its moments and this learner no longer has them: its step must be made again.
 */
export interface Learner {
  /** e.g. `tensorflow 2.20.0 cpu`; shown at start and recorded in the checkpoint. */
  readonly backend: string;
  step(
    parent: TrainState,
    batch: TrainBatch,
    settings: TrainSettings,
    others?: OtherModels,
    onProgress?: (done: number, total: number) => void,
    signal?: AbortSignal,
  ): Promise<{ state: TrainState; metrics: TrainMetrics }>;
  /** Changes nothing, and throws as a step does. */
  score(
    model: Pick<TrainState, 'config' | 'weights' | 'adapter' | 'critic'>,
    batch: ScoredBatch,
    what: ScoreQuery,
    compute?: ComputeSettings,
    signal?: AbortSignal,
  ): Promise<LearnerScores>;
  close(): Promise<void>;
}
