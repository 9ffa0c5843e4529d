import type { Client } from '@temporalio/client';
import { describeExecution } from './describe.ts';
import type { Description } from './describe.ts';
import { heartbeatOf } from './heartbeats.ts';
import type { Heartbeat } from './heartbeats.ts';
import { faultOf, firstValue, millisOf, secondsOf } from './temporal-values.ts';
import type { Fault, DescribedActivity as RawActivity } from './temporal-values.ts';

// What workflows wait for, as Temporal itself knows it: no worker is asked.

/** An activity that has not come to its end. Moments are epoch milliseconds. */
export interface PendingActivity {
  workflowId: string;
  activity: string;
  /** null where the server does not say. */
  queue: string | null;
  /** `waits` for a worker, or for its next attempt. */
  state: 'waits' | 'runs' | 'paused';
  attempt: number;
  /** When this attempt may begin. */
  due: number | null;
  startedAt: number | null;
  heartbeatAt: number | null;
  /** Without a sign of life for so long it is given to another worker; 0 where it owes none. */
  heartbeatSeconds: number;
  /** Why the attempt before failed. */
  lastFailure: Fault | null;
  worker: string | null;
  /** With its last sign of life. */
  said: Heartbeat | null;
}

/** A workflow that a worker has to look at: something has happened that it has not heard of. */
export interface PendingTask {
  workflowId: string;
  queue: string;
  /** From 1; more than one says that the workflow cannot be executed. */
  attempt: number;
  since: number;
  startedAt: number | null;
}

export interface Pending {
  activities: PendingActivity[];
  tasks: PendingTask[];
  /** Workflows that were looked at, and whether there are more. */
  workflows: number;
  more: boolean;
}

/** Decoded they are numbers, in JSON names. */
const STATES: Record<string, PendingActivity['state']> = {
  '2': 'runs',
  PENDING_ACTIVITY_STATE_STARTED: 'runs',
  '3': 'runs',
  PENDING_ACTIVITY_STATE_CANCEL_REQUESTED: 'runs',
  '4': 'paused',
  PENDING_ACTIVITY_STATE_PAUSED: 'paused',
};

/** Of these workflows and of all that they have started and not seen end; of `most` at most. */
export async function pendingOf(
  temporal: Client,
  roots: readonly string[],
  { most = 100 }: { most?: number } = {},
): Promise<Pending> {
  const found: Pending = { activities: [], tasks: [], workflows: 0, more: false };
  const seen = new Set<string>();
  let layer = [...new Set(roots)];
  while (layer.length > 0) {
    const looked = layer.slice(0, most - found.workflows);
    if (looked.length < layer.length) found.more = true;
    found.workflows += looked.length;
    for (const id of looked) seen.add(id);
    const described = await Promise.all(
      looked.map((workflowId) => describeExecution(temporal, { workflowId })),
    );
    layer = [];
    described.forEach((workflow, i) => {
      if (workflow === null) return;
      const workflowId = looked[i]!;
      found.activities.push(...(workflow.pendingActivities ?? []).map((one) => activityOf(workflowId, one)));
      const task = taskOf(workflowId, workflow);
      if (task !== null) found.tasks.push(task);
      for (const { workflowId: child } of workflow.pendingChildren ?? []) {
        if (typeof child === 'string' && !seen.has(child) && !layer.includes(child)) layer.push(child);
      }
    });
  }
  return found;
}

function activityOf(workflowId: string, raw: RawActivity): PendingActivity {
  const { activityType, state, attempt, lastFailure, lastWorkerIdentity, activityOptions } = raw;
  return {
    workflowId,
    activity: activityType?.name ?? '',
    queue: activityOptions?.taskQueue?.name ?? null,
    state: STATES[String(state)] ?? 'waits',
    attempt: attempt ?? 1,
    due: millisOf(raw.nextAttemptScheduleTime) ?? millisOf(raw.scheduledTime),
    startedAt: millisOf(raw.lastStartedTime),
    heartbeatAt: millisOf(raw.lastHeartbeatTime),
    heartbeatSeconds: secondsOf(activityOptions?.heartbeatTimeout),
    lastFailure: lastFailure ? faultOf(lastFailure) : null,
    worker: lastWorkerIdentity || null,
    said: heartbeatOf(firstValue(raw.heartbeatDetails)),
  };
}

function taskOf(
  workflowId: string,
  { pendingWorkflowTask: task, executionConfig }: Description,
): PendingTask | null {
  if (!task) return null;
  return {
    workflowId,
    queue: executionConfig?.taskQueue?.name ?? '',
    attempt: task.attempt ?? 1,
    since: millisOf(task.originalScheduledTime) ?? millisOf(task.scheduledTime) ?? 0,
    startedAt: millisOf(task.startedTime),
  };
}
