// What a learner step minimizes: the name of a loss and its constants. The equations stand in engine/learner/losses/, one
// file each.

import type { Json } from '../json/json.ts';

/** What log-probs are of: the softmax of the logits over their temperature, among `topK` tokens at most, 0: among all. */
export interface OfSamples {
  temperature: number;
  topK: number;
}

export type Aggregation = 'token' | 'sequence' | 'dr-grpo';

/** The mean over tokens that a loss is. */
export interface MeanOf {
  /**
   * `token`: mean over all masked tokens of the minibatch (DAPO); `sequence`: mean over tokens, then over sequences
   * (GRPO); `dr-grpo`: sum over tokens divided by `maxCompletionTokens`, mean over sequences (Liu et al. 2025, TRL's
   * `dr_grpo`), so that a long sequence does not count less by the token.
   */
  aggregation: Aggregation;
  /** What an episode may have after its prompt, in tokens: the constant denominator of `dr-grpo`. */
  maxCompletionTokens: number;
}

/** Corrects for an engine that sampled with other probabilities than those that the loss speaks of. */
export interface ImportanceCorrection {
  /** Bounds the weight of a token; 0 leaves the correction out. */
  importanceCap: number;
  /**
   * `truncate`, the default: min(weight, cap) (TIS, Yao et al. 2025; Ionides 2008). `mask`: the weight within
   * [floor, cap], and 0 outside (IcePop, Ling team 2025); the token still counts in the mean. `difference`: truncated, and
   * 0 where the probability of the token has moved too far (DPPO, Qi et al. 2026, Binary-TV), in the place of the clip of
   * the ratio.
   */
  importanceRule?: ImportanceRule | undefined;
  /** Bounds the weight from below; absent: 1 / cap for `mask`, and not at all for the others. */
  importanceFloor?: number | undefined;
  /**
   * Of `difference`: how far the probability of a token may be below that which it was sampled with, where its advantage is
   * negative, and above, where it is positive.
   */
  differenceLow?: number | undefined;
  differenceHigh?: number | undefined;
}

export type ImportanceRule = 'truncate' | 'mask' | 'difference';

/** `entropyBonus` · the mean entropy of the distributions (nats) is taken off the loss (Mnih et al. 2016); 0 or absent: not. */
interface EntropyBonus {
  entropyBonus?: number | undefined;
}

/** Negative log-likelihood of the masked tokens; negative examples by unlikelihood, −log(1 − p) (Welleck et al. 2020). */
interface SupervisedObjective {
  kind: 'supervised';
}

/** The clipped surrogate of PPO (Schulman et al. 2017), asymmetric as in DAPO (Yu et al. 2025), with GRPO's KL. */
export interface ClippedObjective extends MeanOf, OfSamples, ImportanceCorrection, EntropyBonus {
  kind: 'clipped';
  clipRatioLow: number;
  clipRatioHigh: number;
  /** Weight of KL(policy ‖ reference); 0 leaves the reference out of the computation. */
  beta: number;
  /** Of KL(policy ‖ reference), in the loss (Schulman 2020). Absent: k3. */
  klEstimator?: 'k2';
}

/** Group sequence policy optimization (Zheng et al. 2025): the clip is on the ratio of a whole sequence. */
export interface GspoObjective extends OfSamples {
  kind: 'gspo';
  clipRatioLow: number;
  clipRatioHigh: number;
}

/** Clipped importance sampling policy optimization (MiniMax-M1, 2025): weights are clipped, no token loses its gradient. */
export interface CispoObjective extends MeanOf, OfSamples, EntropyBonus {
  kind: 'cispo';
  /** The weight is 1 + this at most. */
  clipRatioHigh: number;
}

/** REINFORCE (Williams 1992). The weight of `importanceCap` is that of the policy that learns. */
export interface ReinforceObjective extends MeanOf, OfSamples, ImportanceCorrection, EntropyBonus {
  kind: 'reinforce';
}

/** Direct preference optimization (Rafailov et al. 2023), over pairs of sequences. */
export interface DpoObjective extends OfSamples {
  kind: 'dpo';
  /** `ipo`: the squared loss of Azar et al. 2023, with `beta` for their τ. */
  variant: 'sigmoid' | 'ipo';
  beta: number;
  /** How often a label is taken to be wrong (Mitchell 2023), in [0, 0.5); `sigmoid` only. */
  labelSmoothing: number;
}

/** Kahneman–Tversky optimization (Ethayarajh et al. 2024), over single sequences that are desirable or not. */
export interface KtoObjective extends OfSamples {
  kind: 'kto';
  beta: number;
  /** λ_D and λ_U: what a sequence of either sort counts for. */
  desirableWeight: number;
  undesirableWeight: number;
}

/** How far a student is from its teacher. `jsd`: generalized Jensen–Shannon, `beta` in (0, 1) the teacher's part. */
export type Divergence =
  | { kind: 'reverse-kl' }
  | { kind: 'reverse-kl-each' }
  | { kind: 'forward-kl' }
  | { kind: 'jsd'; beta: number };

/** Distillation over the whole vocabulary. */
export interface DistillObjective extends MeanOf {
  kind: 'distill';
  divergence: Divergence;
  /** Of student and teachers. */
  temperature: number;
  /** What each teacher counts for, in their order; they sum to 1. A sequence may have one teacher of its own. */
  teacherWeights: number[];
}

/**
 * A loss that a project brings to the learner in PyTorch (docs/extend.md), by name, with whatever else it reads. The
 * learner of TypeScript has none.
 */
interface OwnObjective extends OfSamples {
  kind: 'own';
  name: string;
  options: Record<string, Json>;
}

/** Which objectives there are. */
export const OBJECTIVE_KINDS = [
  'supervised',
  'clipped',
  'gspo',
  'cispo',
  'reinforce',
  'dpo',
  'kto',
  'distill',
  'own',
] as const satisfies readonly Objective['kind'][];

export type Objective =
  | SupervisedObjective
  | ClippedObjective
  | GspoObjective
  | CispoObjective
  | ReinforceObjective
  | DpoObjective
  | KtoObjective
  | DistillObjective
  | OwnObjective;
