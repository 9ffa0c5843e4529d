import type { Tensor } from '@tensorflow/tfjs';
import type { Program } from './programs.ts';

/** How programs are run. `run` may be called inside `tf.tidy`; its results belong to the caller. */
export interface Runner {
  prepare(program: Program, inputs: Tensor[]): Promise<(inputs: Tensor[]) => Tensor[]>;
  close(): void;
}

/** Op by op; works on every backend. */
export const eagerRunner: Runner = {
  prepare: (program) => Promise.resolve((inputs) => program.compute(inputs)),
  close: () => undefined,
};
