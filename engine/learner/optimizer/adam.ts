import type { Tensor } from '@tensorflow/tfjs';
import type { TensorflowBackend } from '../tensorflow/backend.ts';
import type { OptimizerSettings } from '../contract.ts';
import { NativeAdam } from './native-adam.ts';
import { PlainAdam } from './plain-adam.ts';

/**
 * Weights and moments on the device, changed by Adam (Kingma & Ba 2015, algorithm 1 in the form at the end of its
 * section 2, where ε is added to √v before the bias is corrected, as TensorFlow does it).
 */
export interface Adam {
  /** Valid until the next update. */
  weights(): Tensor[];
  moments(): { first: Tensor[]; second: Tensor[] };
  /** `update` counts from 1. `gradients` stay the caller's. */
  update(gradients: Tensor[], rate: number, update: number, settings: OptimizerSettings): void;
  dispose(): void;
}

/** Takes ownership of the tensors. */
export function createAdam(
  backend: TensorflowBackend,
  weights: Tensor[],
  first: Tensor[],
  second: Tensor[],
): Adam {
  return backend.native
    ? new NativeAdam(backend.tf, backend.native, weights, first, second)
    : new PlainAdam(backend.tf, weights, first, second);
}

/** Linear warm-up: the rate of the update that comes after `updates` others. */
export function rateAt(settings: OptimizerSettings, updates: number): number {
  const { learningRate, warmupUpdates } = settings;
  return warmupUpdates > 0 ? learningRate * Math.min(1, (updates + 1) / warmupUpdates) : learningRate;
}
