import type { Client } from '@temporalio/client';
import { createRunWatch } from '../run-watch.ts';
import { createAssessment } from './assessment.ts';
import type { LadderDependencies } from './candidates.ts';
import { createLadder } from './ladder.ts';
import { createReverify } from './reverify.ts';
import { createSweep } from './sweep.ts';

/** What the workflows of a ladder ask for: escalations, assessments, verifications of stored episodes, and sweeps. */
export const createLadderActivities = (deps: LadderDependencies, client: Client) => ({
  ...createLadder(deps),
  ...createAssessment(deps),
  ...createReverify(deps),
  ...createSweep(deps),
  // A ladder outlives its run.
  ...createRunWatch({ client }),
});
