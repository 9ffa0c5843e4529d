import type { Scalar, Tensor1D } from '@tensorflow/tfjs';
import type { Divergence, OfSamples } from '../../../core/algorithms/objective.ts';
import type { Tf } from '../tensorflow/backend.ts';
import type { SequenceStream, TokenStream, TrainBatch } from '../contract.ts';

/**
 * What a loss may read of each token besides its log-prob and weight: what the batch says of it, and its log-prob under
 * the weights that the step started from (`old`).
 */
export type TokenInput = TokenStream | 'old';

/** What an update minimizes, and all that the learner must know of it: one file each in this folder. */
export type Loss = TokenLoss | CoupledLoss | DistributionLoss;

interface LossFacts {
  /** What the log-probs are of. */
  readonly from: OfSamples;
  /** Whether a policy has sampled the tokens that count; nobody has sampled a demonstration. */
  readonly ofSamples: boolean;
  /** What a batch must say of its tokens, and of its sequences. */
  readonly needs: readonly TokenStream[];
  readonly needsOfSequences?: readonly SequenceStream[];
  /** What is wrong with a batch that has all of that, if anything. */
  problemOf?(batch: TrainBatch): string | null;
  /** Whether it can leave out or hold what has moved too far. */
  readonly clips: boolean;
  /** Whether it tells how the policy orders what is preferred and what is not. */
  readonly prefers?: true;
  /** Whether a sequence moves the weights whose every advantage is 0. */
  readonly movesAll: boolean;
  /** In the order in which a program takes them. `single`: the step has one update, so the old policy is the current one. */
  reads(single: boolean): TokenInput[];
}

/** A sum over tokens of a function of each one's log-prob: a part of the program that computes the gradient. */
export interface TokenLoss extends LossFacts {
  readonly kind: 'token';
  /** Two losses with one key compute the same. */
  readonly key: string;
  /** Times the weighted entropy of the distributions, in nats, is taken off; 0: it has no gradient. */
  readonly entropyBonus: number;
  /** What each token [total] weighs in the loss of a minibatch of these sequences; 0 where the mask is 0. */
  weights(batch: TrainBatch, sequences: readonly number[]): Float32Array;
  compute(tf: Tf, inputs: LossInputs): LossResult;
}

/** All [N], and 0 where the mask is 0, for Inf · 0 is NaN. What `reads` names is there. */
export interface LossInputs extends Partial<Record<TokenInput, Tensor1D>> {
  logprobs: Tensor1D;
  weights: Tensor1D;
}

/** For the metrics, per token [N]: k3 to the reference, and 1 where a clip bound. */
export interface LossResult {
  loss: Scalar;
  kl: Tensor1D;
  clipped: Tensor1D;
}

/**
 * A function of whole sequences, in plain numbers. The learner computes the log-probs of an update's tokens, asks for the
 * slope of the loss by each of them, and minimizes Σ slope · log p with these constants, whose gradient by the weights is
 * that of the loss (chain rule).
 */
export interface CoupledLoss extends LossFacts {
  readonly kind: 'coupled';
  /** Of one update. `inputs` are [total], 0 where the mask is 0; what `reads` names is there. */
  compute(batch: TrainBatch, sequences: readonly number[], inputs: CoupledInputs): CoupledResult;
}

interface CoupledInputs extends Partial<Record<TokenInput, Float32Array>> {
  logprobs: Float32Array;
}

export interface CoupledResult {
  loss: number;
  /** dL / d log p [total], 0 where the mask is 0. */
  slopes: Float32Array;
  /** For the metrics, per token [total]: 1 where a clip bound. */
  clipped?: Float32Array;
  preference?: Preference;
}

/** How the policy orders what is preferred or desirable, and what is not; null where an update has no such. */
interface Preference {
  /** Mean reward β log(π / π_ref) of the former less that of the latter. */
  margin: number | null;
  /** Share of pairs, or of sequences, on the right side. */
  accuracy: number | null;
}

/** A sum over tokens of a divergence between whole distributions, the policy's and its teachers': a program of its own. */
export interface DistributionLoss extends LossFacts {
  readonly kind: 'distribution';
  readonly key: string;
  readonly divergence: Divergence;
  /** Teachers that it needs. */
  readonly teachers: number;
  /** As of a token loss. */
  weights(batch: TrainBatch, sequences: readonly number[]): Float32Array;
  /** What each teacher's distribution counts for at each token [total]; they sum to 1 over the teachers. */
  shares(batch: TrainBatch): Float32Array[];
}

/** Throws TypeError where a loss was not given what it reads. */
export function given<T>(input: T | undefined): T {
  if (input === undefined) throw new TypeError('a loss lacks numbers that its settings ask for');
  return input;
}
