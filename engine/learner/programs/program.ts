import type { Tensor, Tensor1D, Tensor2D } from '@tensorflow/tfjs';
import type { LoraSpec } from '../../../core/schema/lora.ts';
import type { ModelConfig } from '../../../core/model/config.ts';
import type { ComputeSettings } from '../contract.ts';
import type { TensorflowBackend } from '../tensorflow/backend.ts';
import type { Precision } from '../tensorflow/runner.ts';

/** A pure function from tensors to tensors: run as it is, or traced into a graph once per shape of its inputs. */
export interface Program {
  /** Two programs with one key compute the same. */
  key: string;
  precision: Precision;
  compute(inputs: Tensor[]): Tensor[];
}

/** What is computed, and how. */
export interface PolicyModel {
  config: ModelConfig;
  lora?: LoraSpec | undefined;
  compute?: Pick<ComputeSettings, 'precision' | 'gradientCheckpointing'> | undefined;
}

/** With every setting said. */
export type ComputedModel = PolicyModel & {
  compute: Pick<ComputeSettings, 'precision' | 'gradientCheckpointing'>;
};

/** Rows that are computed by one core: tokens and targets [N], segments [B, T], with top-k the kept ids [N, topK]. */
export interface RowsOfCore {
  tokens: Tensor1D;
  targets: Tensor1D;
  segments: Tensor2D;
  kept?: Tensor2D | undefined;
}

/**
 * The rows of a micro-batch in equal parts, one a core: nothing in the graph makes one wait for another, so TensorFlow
 * computes them side by side. They are cut before any gradient is taken, because what a gradient reads must outlive
 * the forward pass.
 */
export function rowsByCore({ tf, threads }: TensorflowBackend, inputs: Tensor[], topK: number): RowsOfCore[] {
  const [tokens, targets, segments] = inputs as [Tensor1D, Tensor1D, Tensor2D];
  const kept = topK > 0 ? (inputs[3] as Tensor2D) : undefined;
  const [rows, length] = segments.shape;
  if (threads === 1 || rows % threads !== 0) return [{ tokens, targets, segments, kept }];
  const own = rows / threads;
  return Array.from({ length: threads }, (_, part) => ({
    tokens: tf.slice(tokens, [part * own * length], [own * length]),
    targets: tf.slice(targets, [part * own * length], [own * length]),
    segments: tf.slice(segments, [part * own, 0], [own, length]),
    kept: kept && tf.slice(kept, [part * own * length, 0], [own * length, topK]),
  }));
}
