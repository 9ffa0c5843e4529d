import { afterAll } from 'vitest';
import type { Learner } from '../../../../engine/learner/contract.ts';
import { createLocalLearner } from '../../../../engine/learner/local-learner.ts';

/** A learner in this process for all tests of a file, closed after them. Without a mode it is as in a run. */
export async function learnerOfFile(mode?: 'eager' | 'traced'): Promise<Learner> {
  const learner = await createLocalLearner({ backend: 'cpu', ...(mode && { mode }) });
  afterAll(() => learner.close());
  return learner;
}
