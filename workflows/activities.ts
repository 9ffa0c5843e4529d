import { proxyActivities } from '@temporalio/workflow';
import type { ActivityOptions } from '@temporalio/workflow';
import { QUEUES } from '../core/names.ts';
import type { LongCall } from '../core/requests.ts';
import type { AssessmentActivities } from '../activities/assessment.ts';
import type { CurriculumActivities } from '../activities/curriculum.ts';
import type { LadderActivities } from '../activities/ladder.ts';
import type { LearnerActivities } from '../activities/learner.ts';
import type { ReverifyActivities } from '../activities/reverify.ts';
import type { RolloutActivities } from '../activities/rollout.ts';
import type { ToolActivities } from '../activities/tools.ts';
import type { SweepActivities } from '../activities/sweep.ts';
import type { VerdictActivities } from '../activities/verdicts.ts';
import type { VerifierActivities } from '../activities/verifiers.ts';

/**
 * What can be retried is retried until it works: a server that is away for a day costs a day, not a run. What cannot
 * be helped by retrying is thrown as non-retryable.
 */
export const RETRY = {
  initialInterval: '200 milliseconds',
  backoffCoefficient: 2,
  maximumInterval: '15 seconds',
} as const;

/** A worker that is silent for this long counts as dead, and its activity goes to another one. */
const HEARTBEAT = '6 seconds';

export const curriculumActivities = proxyActivities<CurriculumActivities>({
  taskQueue: QUEUES.orchestrator,
  startToCloseTimeout: '5 minutes',
  heartbeatTimeout: HEARTBEAT,
  retry: RETRY,
});

export const rolloutActivities = proxyActivities<RolloutActivities>({
  taskQueue: QUEUES.rollout,
  startToCloseTimeout: '1 hour',
  heartbeatTimeout: HEARTBEAT,
  retry: RETRY,
});

export const verifierActivities = proxyActivities<VerifierActivities>({
  taskQueue: QUEUES.verifier,
  startToCloseTimeout: '10 minutes',
  heartbeatTimeout: HEARTBEAT,
  retry: RETRY,
});

export const ladderActivities = proxyActivities<LadderActivities>({
  taskQueue: QUEUES.verifier,
  startToCloseTimeout: '10 minutes',
  heartbeatTimeout: HEARTBEAT,
  retry: RETRY,
});

export const reverifyActivities = proxyActivities<ReverifyActivities>({
  taskQueue: QUEUES.verifier,
  startToCloseTimeout: '1 hour',
  heartbeatTimeout: HEARTBEAT,
  retry: RETRY,
});

export const assessmentActivities = proxyActivities<AssessmentActivities>({
  taskQueue: QUEUES.verifier,
  startToCloseTimeout: '10 minutes',
  heartbeatTimeout: HEARTBEAT,
  retry: RETRY,
});

export const sweepActivities = proxyActivities<SweepActivities>({
  taskQueue: QUEUES.verifier,
  startToCloseTimeout: '10 minutes',
  heartbeatTimeout: HEARTBEAT,
  retry: RETRY,
});

export const verdictActivities = proxyActivities<VerdictActivities>({
  taskQueue: QUEUES.verifier,
  startToCloseTimeout: '5 minutes',
  heartbeatTimeout: HEARTBEAT,
  retry: RETRY,
});

export const learnerActivities = proxyActivities<LearnerActivities>({
  taskQueue: QUEUES.learner,
  startToCloseTimeout: '6 hours',
  heartbeatTimeout: HEARTBEAT,
  retry: RETRY,
});

/** The worker ends a tool whose time is up; what it has said may have to wait for an object store that is away. */
const OUTAGE_MS = 24 * 3600 * 1000;

/** Each tool says how long one attempt may take, how often it gives a sign of life, and whether it may be repeated. */
export function toolActivities(call: LongCall) {
  const options: ActivityOptions = {
    taskQueue: QUEUES.tool,
    startToCloseTimeout: call.timeoutSeconds * 1000 + OUTAGE_MS,
    heartbeatTimeout: call.heartbeatSeconds * 1000,
    retry: { ...RETRY, maximumAttempts: call.maxAttempts },
  };
  return proxyActivities<ToolActivities>(options);
}
