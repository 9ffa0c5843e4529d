import type { Scalar, Tensor1D } from '@tensorflow/tfjs';
import type { Tf } from '../backend.ts';
import type { TokenStream, TrainBatch } from '../contract.ts';

/**
 * What a loss may read of each token besides its log-prob and weight: what the batch says of it, and its log-prob under
 * the weights that the step started from (`old`).
 */
export type TokenInput = TokenStream | 'old';

/** What log-probs are of: the softmax of the logits over their temperature, among `topK` tokens at most, 0: among all. */
export interface SampledFrom {
  temperature: number;
  topK: number;
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

/** What an update minimizes, and all that the learner must know of it: one file each in this folder. */
export interface Loss {
  /** What the log-probs are of. */
  readonly from: SampledFrom;
  /** Whether a policy has sampled the tokens that count; nobody has sampled a demonstration. */
  readonly ofSamples: boolean;
  /** What a batch must say of its tokens. */
  readonly needs: readonly TokenStream[];
  /** Whether a sequence moves the weights whose every advantage is 0. */
  readonly movesAll: boolean;
  /** In the order in which a program takes them. `single`: the step has one update, so the old policy is the current one. */
  reads(single: boolean): TokenInput[];
  /** What each token [total] weighs in the loss of a minibatch of these sequences; 0 where the mask is 0. */
  weights(batch: TrainBatch, sequences: readonly number[]): Float32Array;
  compute(tf: Tf, inputs: LossInputs): LossResult;
}
