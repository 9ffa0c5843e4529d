import type { LearnerMetrics as TrainMetrics } from '../../core/requests.ts';
import type { LearnerSpec } from '../../core/spec.ts';
import type { LoraAdapter } from '../lora/adapter.ts';
import type { ModelConfig, Weights } from '../model-config.ts';
import type { Objective } from './losses/index.ts';

/**
 * N sequences laid end to end. `tokens` [total]; sequence i is `tokens[offsets[i] .. offsets[i + 1])`,
 * `offsets` [N + 1]. The other arrays are [total] and speak of the token at the same position as a *target*:
 * `mask` 1 where the loss counts it (sampled by the policy, or demonstrated), 0 for prompts and observations.
 */
export interface TrainBatch {
  tokens: Int32Array;
  offsets: Int32Array;
  mask: Float32Array;
  /** Per token weight in the loss: the advantage for `grpo`; for `supervised` the example's weight (negative: make it less likely). */
  advantages: Float32Array;
  /** Log-probabilities when sampled, at `temperature`; zeros for `supervised`. */
  rolloutLogprobs: Float32Array;
  /** [N], 1 where other weights than those that the step starts from have sampled the sequence. Absent: none is such. */
  late?: Int32Array;
  /** What a cut of the sampling has left each token [total]; absent: there was none. */
  kept?: KeptSets;
}

/** Token i was sampled among `ids[offsets[i] .. offsets[i + 1])`, ascending, offsets [total + 1]; among all where there are none. */
export interface KeptSets {
  ids: Int32Array;
  offsets: Int32Array;
}

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

export interface TrainSettings {
  objective: Objective;
  optimizer: OptimizerSettings;
  /** Sequences per optimizer update at most; a step's updates have the same number, give or take one. */
  minibatch: number;
  /** Passes over the batch. */
  epochs: number;
  /** Orders the minibatches. */
  seed: number;
  /** `DEFAULT_COMPUTE` where it is absent. */
  compute?: ComputeSettings;
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
  /** Optimizer updates done so far. */
  updates: number;
}

export type { LearnerMetrics as TrainMetrics } from '../../core/requests.ts';

/**
 * A step is a pure function of its arguments, repeatable to the bit on the same backend.
 * An aborted `signal` rejects with its reason, as soon as the learner can be stopped.
 * `reference` is the policy that the KL is measured against, needed when `beta` > 0.
 * Throws GradusError('learner', …): `diverged` when loss or gradient is not finite, `batch` when a batch does not fit
 * the model, `precision` where this backend has none such.
 */
export interface Learner {
  /** e.g. `tensorflow 2.20.0 cpu`; shown at start and recorded in the checkpoint. */
  readonly backend: string;
  step(
    parent: TrainState,
    batch: TrainBatch,
    settings: TrainSettings,
    reference?: Weights,
    onProgress?: (done: number, total: number) => void,
    signal?: AbortSignal,
  ): Promise<{ state: TrainState; metrics: TrainMetrics }>;
  close(): Promise<void>;
}
