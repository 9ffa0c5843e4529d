import { createLearner } from '../engine/learner/process/remote-learner.ts';
import type { RemoteLearner } from '../engine/learner/process/remote-learner.ts';

const LEARNER_THREADS = 'GRADUS_LEARNER_THREADS';

/** A learner's threads are told by a variable, which it reads when it starts. */
export async function oneThreadedLearner(): Promise<RemoteLearner> {
  const before = process.env[LEARNER_THREADS];
  process.env[LEARNER_THREADS] = '1';
  try {
    return await createLearner();
  } finally {
    if (before === undefined) delete process.env[LEARNER_THREADS];
    else process.env[LEARNER_THREADS] = before;
  }
}
