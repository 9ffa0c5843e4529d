import type { Tensor } from '@tensorflow/tfjs';
import type { LearnerSpec } from '../../../core/schema/learner.ts';
import type { Program } from '../programs/program.ts';

/** Of the operands of matrix products. */
export type Precision = LearnerSpec['precision'];

/** How programs are run. `run` may be called inside `tf.tidy`; its results belong to the caller. */
export interface Runner {
  readonly precisions: readonly Precision[];
  prepare(program: Program, inputs: Tensor[]): Promise<(inputs: Tensor[]) => Tensor[]>;
  close(): void;
}

/** Op by op; works on every backend. */
export const eagerRunner: Runner = {
  // tfjs has no tensors of bfloat16.
  precisions: ['float32'],
  prepare: (program) => Promise.resolve((inputs) => program.compute(inputs)),
  close: () => undefined,
};
