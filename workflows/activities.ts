import { proxyActivities } from '@temporalio/workflow';
import type { ActivityOptions } from '@temporalio/workflow';
import { QUEUES } from '../core/names.ts';
import type { GroupRequest, LongCall } from '../core/requests/rollout.ts';
import type { AgentSpec } from '../core/schema/agent.ts';
import type { AssessmentActivities } from '../activities/ladder/assessment.ts';
import type { CurriculumActivities } from '../activities/training/curriculum.ts';
import type { LadderActivities } from '../activities/ladder/ladder.ts';
import type { LearnerActivities } from '../activities/training/learner.ts';
import type { ReverifyActivities } from '../activities/ladder/reverify.ts';
import type { RunWatchActivities } from '../activities/run-watch.ts';
import type { RolloutActivities } from '../activities/rollout/rollout.ts';
import type { ToolActivities } from '../activities/rollout/tools.ts';
import type { SweepActivities } from '../activities/ladder/sweep.ts';
import type { VerdictActivities } from '../activities/verification/verdicts.ts';
import type { VerifierActivities } from '../activities/verification/verifiers.ts';
import { retryAfterRepair } from './control/retry-after-repair.ts';

/**
 * What can be retried is retried until it works: a server that is away for a day costs a day, not a run. What cannot
 * be helped by retrying is thrown as non-retryable.
 */
export const RETRY = {
  initialInterval: '200 milliseconds',
  backoffCoefficient: 2,
  maximumInterval: '15 seconds',
} as const;

/**
 * A worker that is silent for this long counts as dead, and its activity goes to another one. It is long enough for a
 * machine or a server that stands still for a while: a supervisor reports workers that died at once (docs/adr/0026).
 */
export const HEARTBEAT = '20 seconds';

type Activities = Record<string, (request: never) => Promise<unknown>>;

/**
 * The same activities; one that meets a damaged object of the store waits in its place until that is mended
 * (retry-after-repair.ts), whichever workflow of a run it belongs to.
 */
function retriedAfterRepair<A extends Activities>(activities: A): A {
  return new Proxy(activities, {
    get: (target, name: string) => (request: never) => retryAfterRepair(() => target[name]!(request)),
  });
}

export const curriculumActivities = retriedAfterRepair(
  proxyActivities<CurriculumActivities>({
    taskQueue: QUEUES.orchestrator,
    startToCloseTimeout: '5 minutes',
    heartbeatTimeout: HEARTBEAT,
    retry: RETRY,
  }),
);

/** What plays episodes on the orchestrator, and may take as long as that. */
export const variationActivities = retriedAfterRepair(
  proxyActivities<Pick<CurriculumActivities, 'varyFailures' | 'synthesize'>>({
    taskQueue: QUEUES.orchestrator,
    startToCloseTimeout: '1 hour',
    heartbeatTimeout: HEARTBEAT,
    retry: RETRY,
  }),
);

export const rolloutActivities = retriedAfterRepair(
  proxyActivities<RolloutActivities>({
    taskQueue: QUEUES.rollout,
    startToCloseTimeout: '1 hour',
    heartbeatTimeout: HEARTBEAT,
    retry: RETRY,
  }),
);

export const verifierActivities = retriedAfterRepair(
  proxyActivities<VerifierActivities>({
    taskQueue: QUEUES.verifier,
    startToCloseTimeout: '1 hour',
    heartbeatTimeout: HEARTBEAT,
    retry: RETRY,
  }),
);

export const ladderActivities = retriedAfterRepair(
  proxyActivities<LadderActivities>({
    taskQueue: QUEUES.verifier,
    startToCloseTimeout: '10 minutes',
    heartbeatTimeout: HEARTBEAT,
    retry: RETRY,
  }),
);

export const reverifyActivities = retriedAfterRepair(
  proxyActivities<ReverifyActivities>({
    taskQueue: QUEUES.verifier,
    startToCloseTimeout: '1 hour',
    heartbeatTimeout: HEARTBEAT,
    retry: RETRY,
  }),
);

export const assessmentActivities = retriedAfterRepair(
  proxyActivities<AssessmentActivities>({
    taskQueue: QUEUES.verifier,
    startToCloseTimeout: '10 minutes',
    heartbeatTimeout: HEARTBEAT,
    retry: RETRY,
  }),
);

export const sweepActivities = retriedAfterRepair(
  proxyActivities<SweepActivities>({
    taskQueue: QUEUES.verifier,
    startToCloseTimeout: '10 minutes',
    heartbeatTimeout: HEARTBEAT,
    retry: RETRY,
  }),
);

export const verdictActivities = retriedAfterRepair(
  proxyActivities<VerdictActivities>({
    taskQueue: QUEUES.verifier,
    startToCloseTimeout: '5 minutes',
    heartbeatTimeout: HEARTBEAT,
    retry: RETRY,
  }),
);

export const runWatchActivities = retriedAfterRepair(
  proxyActivities<RunWatchActivities>({
    taskQueue: QUEUES.verifier,
    startToCloseTimeout: '1 minute',
    heartbeatTimeout: HEARTBEAT,
    retry: RETRY,
  }),
);

export const learnerActivities = retriedAfterRepair(
  proxyActivities<LearnerActivities>({
    taskQueue: QUEUES.learner,
    startToCloseTimeout: '6 hours',
    heartbeatTimeout: HEARTBEAT,
    retry: RETRY,
  }),
);

/** Lets go of what nobody goes on with: tried a few times, for nothing hangs on it but what others hold. */
export const closingActivities = proxyActivities<Pick<RolloutActivities, 'closeSessions'>>({
  taskQueue: QUEUES.rollout,
  // A run that is cancelled while there is no worker does not wait for one.
  scheduleToStartTimeout: '20 seconds',
  startToCloseTimeout: '5 minutes',
  heartbeatTimeout: HEARTBEAT,
  retry: { ...RETRY, maximumAttempts: 5 },
});

/** Agents have their own time, and an agent waits for those before it where no more may run at once. */
export const agentActivities = ({ tasks, samples }: GroupRequest, agent: AgentSpec) =>
  retriedAfterRepair(
    proxyActivities<Pick<RolloutActivities, 'advance'>>({
      taskQueue: QUEUES.rollout,
      startToCloseTimeout:
        tasks.length * samples * agent.maxAttempts * agent.timeoutSeconds * 1000 + OUTAGE_MS,
      heartbeatTimeout: HEARTBEAT,
      retry: RETRY,
    }),
  );

/** How long a worker's own queue may be without an answer until the worker counts as gone, with all that it held. */
const GONE = '1 minute';

/** What the one worker does that has an episode's session. Its loss is a TimeoutFailure. */
export const pinnedActivities = (queue: string) =>
  retriedAfterRepair(
    proxyActivities<Pick<RolloutActivities, 'resume'>>({
      taskQueue: queue,
      scheduleToStartTimeout: GONE,
      startToCloseTimeout: '1 hour',
      heartbeatTimeout: HEARTBEAT,
      retry: RETRY,
    }),
  );

/** What a tool has said may have to wait for an object store that is away. */
const OUTAGE_MS = 24 * 3600 * 1000;

/**
 * A tool says how long one attempt may take and how many it has; the activity counts them. Temporal runs the activity
 * again when its worker is lost, unless the tool may run once only.
 */
export function toolActivities(call: LongCall) {
  const options: ActivityOptions = {
    taskQueue: call.queue ?? QUEUES.tool,
    ...(call.queue !== undefined && { scheduleToStartTimeout: GONE }),
    startToCloseTimeout: call.maxAttempts * call.timeoutSeconds * 1000 + OUTAGE_MS,
    heartbeatTimeout: HEARTBEAT,
    retry: call.once ? { ...RETRY, maximumAttempts: 1 } : RETRY,
  };
  return retriedAfterRepair(proxyActivities<ToolActivities>(options));
}
