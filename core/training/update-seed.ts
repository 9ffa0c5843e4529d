import { randomKey } from '../random.ts';

/** What orders the updates of a learner step; `step` counts over the whole run. */
export const updateSeed = (seed: number, stage: string, step: number): number =>
  randomKey(seed, stage, step).k0;
