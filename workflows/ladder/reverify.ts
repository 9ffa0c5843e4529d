import { workflowInfo } from '@temporalio/workflow';
import { reverifyActivities } from '../activities.ts';
import { askVerdicts } from './ask-verdicts.ts';

export interface ReverifyInput {
  run: string;
  verifier: string;
  version: string;
  /** Only the episodes of this stage, or of this evaluation (`before` and `after` are the report's); all otherwise. */
  stage?: string;
  /** Computations in flight at once; 4 where it is absent. */
  concurrency?: number;
}

export interface ReverifyOutcome {
  /** Verdicts that were computed for this, and what they took. */
  computed: number;
  seconds: number;
  usd: number;
  /** Key of the scores of all episodes. */
  scores: string;
}

/** Judges the stored episodes of a run by another verifier, or another version, without rolling out again. */
export async function reverify(written: ReverifyInput): Promise<ReverifyOutcome> {
  const { concurrency, ...input } = await reverifyActivities.openReverify(written);
  const request = { ...input, writer: `reverify-${workflowInfo().runId}` };
  const { asks, count } = await reverifyActivities.planReverify(request);
  const taken =
    asks === null ? { computed: 0, seconds: 0, usd: 0 } : await askVerdicts(asks, count, { concurrency });
  return { ...taken, scores: await reverifyActivities.keepReverified(request) };
}
