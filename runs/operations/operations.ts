import type { Client } from '@temporalio/client';
import { QUEUES } from '../../core/names.ts';
import { inParallel } from '../../store/in-parallel.ts';
import { describeExecution } from '../temporal/describe.ts';
import { listExecutions, textAttribute } from '../temporal/executions.ts';
import type { Execution } from '../temporal/executions.ts';
import { ANSWERS_WITHIN_MS, fromTemporal } from '../temporal/from-temporal.ts';
import { heartbeatOf } from '../temporal/heartbeats.ts';
import type { Heartbeat } from '../temporal/heartbeats.ts';
import { readQueues } from '../temporal/queues.ts';
import type { Queue } from '../temporal/queues.ts';
import { faultOf, firstValue, millisOf } from '../temporal/temporal-values.ts';
import type { Fault, DescribedActivity } from '../temporal/temporal-values.ts';

/** An activity that is under way, or waits for its next attempt or a worker. Times are epoch milliseconds. */
export interface ActivityInFlight {
  /** The run that it is for, as its workflow says. */
  run: string;
  workflowId: string;
  runId: string;
  workflowType: string;
  name: string;
  /** null where the server does not say. */
  queue: string | null;
  state: 'running' | 'waiting' | 'paused';
  attempt: number;
  /** Of this attempt; of one that waits, since when it might have begun, or from when on it may. */
  since: number | null;
  /** Its last sign of life, in this attempt or in one that was lost. */
  beat: number | null;
  said: Heartbeat | null;
  /** Who runs it, or ran it last. */
  worker: string | null;
  /** Why the attempt before this one failed. */
  lastFailure: Fault | null;
}

/** What goes on in all runs. */
export interface Operations {
  /** Epoch milliseconds. */
  asOf: number;
  /** Those that have been tried most often first, then the oldest. */
  activities: ActivityInFlight[];
  /** Workflows that go on, and how many of them were asked what they do. */
  workflows: { open: number; asked: number };
  queues: Queue[];
}

/** Workflows that are asked what they do; half of them the oldest, which are the ones that hang, half the newest. */
const MOST_ASKED = 300;
/** Of those that go on, as many as are listed to find the oldest. */
const MOST_LISTED = 5000;
const PATIENCE_MS = 8000;
/** Reviews wait for people, and have no activities. */
const OPEN = `ExecutionStatus = 'Running' AND TaskQueue = '${QUEUES.orchestrator}' AND WorkflowType != 'review'`;

/** Throws GradusError('infra', 'temporal-unreachable'). */
export function readOperations(temporal: Client, most = MOST_ASKED): Promise<Operations> {
  const read = async (): Promise<Operations> => {
    const [open, { executions }] = await Promise.all([
      countOf(temporal, OPEN),
      listExecutions(temporal, OPEN, { limit: MOST_LISTED, timeoutMs: PATIENCE_MS }),
    ]);
    const asked = ends(
      executions.toSorted((a, b) => a.startedAt - b.startedAt),
      most,
    );
    const found = await inParallel(asked, (workflow) => activitiesOf(temporal, workflow));
    const activities = found
      .flat()
      .toSorted((a, b) => b.attempt - a.attempt || (a.since ?? 0) - (b.since ?? 0));
    const queues = await readQueues(
      temporal,
      activities.flatMap(({ queue }) => queue ?? []),
    );
    return {
      asOf: Date.now(),
      activities,
      workflows: { open: Math.max(open, executions.length), asked: asked.length },
      queues,
    };
  };
  return fromTemporal(temporal, PATIENCE_MS, read, { answersWithinMs: ANSWERS_WITHIN_MS });
}

async function countOf(temporal: Client, query: string): Promise<number> {
  const { namespace } = temporal.options;
  const { count } = await temporal.workflowService.countWorkflowExecutions({ namespace, query });
  return Number(count ?? 0);
}

/** So many of both ends of a list. */
function ends<T>(all: readonly T[], most: number): T[] {
  if (all.length <= most) return [...all];
  const first = Math.ceil(most / 2);
  return [...all.slice(0, first), ...all.slice(all.length - (most - first))];
}

async function activitiesOf(temporal: Client, workflow: Execution): Promise<ActivityInFlight[]> {
  const { workflowId, runId, type } = workflow;
  const run = textAttribute(workflow, 'GradusRun') ?? workflowId.split('/')[0]!;
  // null of one that was deleted since it was listed.
  const description = await describeExecution(temporal, { workflowId, runId });
  return (description?.pendingActivities ?? []).map((activity) => ({
    run,
    workflowId,
    runId,
    workflowType: type,
    ...inFlight(activity),
  }));
}

/** What the server says of an activity that is not done. */
export function inFlight(
  about: DescribedActivity,
): Omit<ActivityInFlight, 'run' | 'workflowId' | 'runId' | 'workflowType'> {
  const state = STATES[String(about.state ?? 0)] ?? 'waiting';
  return {
    name: about.activityType?.name ?? '',
    queue: about.activityOptions?.taskQueue?.name ?? null,
    state,
    attempt: about.attempt ?? 1,
    since:
      state === 'running'
        ? millisOf(about.lastStartedTime)
        : (millisOf(about.nextAttemptScheduleTime) ?? millisOf(about.scheduledTime)),
    beat: millisOf(about.lastHeartbeatTime),
    said: heartbeatOf(firstValue(about.heartbeatDetails)),
    worker: about.lastWorkerIdentity || null,
    lastFailure: about.lastFailure ? faultOf(about.lastFailure) : null,
  };
}

/** Decoded they are numbers, in JSON names. */
const STATES: Record<string, ActivityInFlight['state']> = {
  '1': 'waiting',
  PENDING_ACTIVITY_STATE_SCHEDULED: 'waiting',
  '2': 'running',
  PENDING_ACTIVITY_STATE_STARTED: 'running',
  '3': 'running',
  PENDING_ACTIVITY_STATE_CANCEL_REQUESTED: 'running',
  '4': 'paused',
  PENDING_ACTIVITY_STATE_PAUSED: 'paused',
  '5': 'running',
  PENDING_ACTIVITY_STATE_PAUSE_REQUESTED: 'running',
};
