import type { OptimizerSpec } from '../core/schema/optimizer.ts';

/** Adam where only the time and memory of a step are measured. */
export const ADAM: OptimizerSpec = {
  learningRate: 1e-4,
  warmupUpdates: 0,
  beta1: 0.9,
  beta2: 0.999,
  epsilon: 1e-8,
  maxGradientNorm: 1,
};
