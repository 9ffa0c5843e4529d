import type { Objective } from '../algorithms/objective.ts';
import type { BlobRef, CheckpointRef } from '../refs.ts';
import type { LearnerSpec } from '../schema/learner.ts';
import type { LoraSpec } from '../schema/lora.ts';
import type { OptimizerSpec } from '../schema/optimizer.ts';
import type { Span } from './span.ts';

/** What a reward model minimizes: see engine/learner/losses/reward-model.ts. */
export type RewardModelLoss = 'cross-entropy' | 'bradley-terry';

/** One learner step: a pure function of these fields, so that a step that was lost is made again to the bit. */
export interface TrainRequest {
  run: string;
  stage: string;
  /** Of the stage, from 1. */
  stageStep: number;
  /** Of the run, from 1: names the checkpoint. */
  step: number;
  parent: CheckpointRef;
  batch: BlobRef;
  /** null: the critic alone is trained. */
  objective: Objective | null;
  optimizer: OptimizerSpec;
  /** A critic learns beside the policy, and begins with the first step that has one. Absent: if there is one, it ends. */
  critic?: {
    clip: number;
    optimizer: OptimizerSpec;
    /** Of a reward model: its values are logits. Absent: the squared error of returns. */
    loss?: RewardModelLoss;
    /** A critic that the parent has is left behind, and another begins. */
    anew?: true;
  };
  /** Start with empty moments and a cold learning rate. */
  resetOptimizer: boolean;
  /** The run's, which a fresh adapter is drawn by. */
  seed: number;
  reference: CheckpointRef | null;
  /** Whose distributions the objective reads, in its order; absent: none. */
  teachers?: CheckpointRef[];
  /** Train an adapter, which starts beside the weights of a parent that has none. Absent: train all weights. */
  lora?: LoraSpec | undefined;
  compute?: LearnerSpec | undefined;
  /** Mean |learner − sampler| log-prob above which the step is refused before the first update, nats. Absent: no bound. */
  maxLogprobGap?: number;
}

/**
 * Of the tokens that the step computed, in nats unless said otherwise. Loss and norm are means over its updates. null is
 * what was not measured: all that is said of the policy, in a step that trains the critic alone.
 */
export interface LearnerMetrics {
  loss: number | null;
  /** L2 norm before clipping. */
  gradientNorm: number | null;
  /**
   * Cosine of the gradient, before clipping, with Adam's first moment before the update: in the mean over the updates that
   * have one, null where gradient or moment is zero in all of them. Absent in older versions.
   */
  gradientMomentumCosine?: number | null;
  entropy: number | null;
  /**
   * K3 estimate of KL(policy ‖ reference), or the divergence from the teachers where there are such; null where the loss
   * computes neither.
   */
  kl: number | null;
  /** Part of the masked tokens whose ratio was clipped; null of a loss without a clip. */
  clipFraction: number | null;
  /**
   * Of an objective that prefers: mean reward β log(π / π_ref) of what is preferred or desirable less that of what is
   * not, and the share of pairs or sequences on the right side: means over the updates that had such, null without.
   */
  preference?: { margin: number | null; accuracy: number | null };
  /**
   * Of the critic, where one was trained: its loss and norm, the part of the tokens whose value was held (null where none
   * ever is), and the share of the returns' variance that its values explained before each update (null where returns do
   * not vary, and of pairs). Of a reward model the values are probabilities there.
   */
  critic?: {
    loss: number;
    gradientNorm: number;
    clipFraction: number | null;
    explainedVariance: number | null;
    /** Of a reward model: part of its labels, or pairs, that were on the right side before each update. Absent of others. */
    accuracy?: number;
  };
  /**
   * Largest and mean |learner − rollout| log-prob before the first update: the gap between the engines, over what the
   * weights that the step starts from have sampled: in late episodes it would be drift. null where nothing is such.
   */
  logprobGapMax: number | null;
  logprobGapMean: number | null;
  /**
   * The mean gap by position behind the first sampled token of a sequence, and by how many positions there are from its
   * first sampled token to its last; absent where the gap is null, and in older versions.
   */
  logprobGapByPosition?: GapBin[];
  logprobGapByLength?: GapBin[];
  /**
   * The same mean by staleness, late sequences included: at 0 it is the gap between the engines, above it is that and how
   * far the policy has moved. Absent where the batch does not say how stale it is, and in older versions.
   */
  logprobGapByStaleness?: StalenessGap[];
  /**
   * Of a loss that weighs samples by importance: the effective sample size (Kish) of the weights before any bound and before
   * the first update, as a part of the tokens, and of the sequences. 1: all weigh the same. Absent of others, and in older
   * versions.
   */
  effectiveSamples?: { tokens: number; sequences: number };
  updates: number;
  /** Tokens that went through forward and backward, of the policy unless the critic is trained alone, without padding. Those of episodes that nothing is learnt from do not. */
  tokens: number;
  seconds: number;
}

/** Sampled tokens at `from` up to where the next bin begins, which doubles from 64 on, and their mean gap, nats. */
export interface GapBin {
  from: number;
  tokens: number;
  mean: number;
}

/** Sampled tokens of weights that are so many learner steps behind those that learn, and their mean gap, nats. */
export interface StalenessGap {
  staleness: number;
  tokens: number;
  mean: number;
}

/** Asks the learner what it makes of the fixed sequence, for servers to be compared with. */
export interface ProbeRequest {
  run: string;
  checkpoint: CheckpointRef;
}

export interface TrainResult {
  checkpoint: CheckpointRef;
  metrics: LearnerMetrics;
  backend: string;
  spans: Span[];
}
