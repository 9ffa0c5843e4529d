import type { Tensor, Tensor1D, Tensor2D, Tensor3D } from '@tensorflow/tfjs';
import type { LoraSpec } from '../../../core/schema/lora.ts';
import type { ModelConfig } from '../../../core/model/config.ts';
import type { PackedRows } from '../batch/row-packing.ts';
import type { ComputeSettings } from '../contract.ts';
import type { SharedPositions } from '../model/shared-positions.ts';
import type { Tf, TensorflowBackend } from '../tensorflow/backend.ts';
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

/**
 * What programs read of rows: tokens [N], targets [N], segments [B, T]. Where positions are shared the last is
 * [B, 2, T], each row's segments and the positions that its places show, and the place of each position [N] follows.
 */
export function rowInputs(tf: Tf, { rows, length, tokens, targets, segments, shared }: PackedRows): Tensor[] {
  const own = [tf.tensor1d(tokens, 'int32'), tf.tensor1d(targets, 'int32')];
  if (!shared) return [...own, tf.tensor2d(segments, [rows, length], 'int32')];
  const both = new Int32Array(2 * rows * length);
  for (let row = 0; row < rows; row++) {
    const [from, to] = [row * length, (row + 1) * length];
    both.set(segments.subarray(from, to), 2 * from);
    both.set(shared.positionOf.subarray(from, to), from + to);
  }
  return [...own, tf.tensor3d(both, [rows, 2, length], 'int32'), tf.tensor1d(shared.placeOf, 'int32')];
}

/** Rows that are computed by one core: tokens and targets [N], segments [B, T], with top-k the kept ids [N, topK]. */
export interface RowsOfCore {
  tokens: Tensor1D;
  targets: Tensor1D;
  segments: Tensor2D;
  shared?: SharedPositions | undefined;
  kept?: Tensor2D | undefined;
}

/**
 * The rows of a micro-batch in equal parts, one a core: nothing in the graph makes one wait for another, so TensorFlow
 * computes them side by side. They are cut before any gradient is taken, because what a gradient reads must outlive
 * the forward pass.
 */
export function rowsByCore(
  { tf, threads }: TensorflowBackend,
  inputs: Tensor[],
  topK: number,
): { parts: RowsOfCore[]; perToken: Tensor1D[] } {
  const [tokens, targets, laid] = inputs as [Tensor1D, Tensor1D, Tensor2D | Tensor3D];
  const rest = inputs.slice(3);
  const placeOf = laid.rank === 3 ? (rest.shift() as Tensor1D) : undefined;
  const kept = topK > 0 ? (rest.shift() as Tensor2D) : undefined;
  const rows = laid.shape[0];
  const length = laid.shape.at(-1)!;
  const cores = rows % threads === 0 ? threads : 1;
  const [own, positions] = [rows / cores, tokens.shape[0] / cores];
  const ofCore = <T extends Tensor>(whole: T, core: number, size: number): T =>
    cores === 1 ? whole : tf.slice(whole, [core * size], [size]);
  const parts = Array.from({ length: cores }, (_, core): RowsOfCore => {
    const places = ofCore(laid, core, own);
    const half = (at: number) => tf.slice(places as Tensor3D, [0, at, 0], [own, 1, length]);
    return {
      tokens: ofCore(tokens, core, positions),
      targets: ofCore(targets, core, positions),
      segments: placeOf ? tf.reshape(half(0), [own, length]) : (places as Tensor2D),
      shared: placeOf && {
        positionOf: tf.reshape(half(1), [own * length]),
        placeOf: ofCore(placeOf, core, positions),
      },
      kept: kept && ofCore(kept, core, positions),
    };
  });
  return { parts, perToken: rest as Tensor1D[] };
}
