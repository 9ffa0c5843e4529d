import { Context } from '@temporalio/activity';
import { Client, WorkflowNotFoundError } from '@temporalio/client';
import { ApplicationFailure } from '@temporalio/common';
import type { ActivityInterceptorsFactory, NativeConnection } from '@temporalio/worker';
import { messageOf } from '../core/errors.ts';
import type { RetryReport, Retrying } from '../core/retrying.ts';
import { activityRetried } from '../workflows/messages.ts';

/** The first attempt that is worth a word; the next ones are twice as far, since each is an event in the run's history. */
const REPORT_FROM = 3;
/** Characters of a failure, so that it may pass through histories. */
const LONGEST_FAILURE = 300;

const isReported = (attempt: number): boolean => {
  const times = Math.log2(attempt / REPORT_FROM);
  return times >= 0 && Number.isInteger(times);
};

/**
 * Makes retries visible: from the third attempt on the worker's log and the run's `progress` say which activity is tried
 * again, how often, and why the last attempt failed, also where it was lost with its worker. Temporal itself retries
 * without a word. Stands outside of `failureInterceptor`, which says whether an error is the last one.
 */
export function retryReports(connection: NativeConnection, namespace: string): ActivityInterceptorsFactory {
  const client = new Client({ connection, namespace });
  return ({ info: { activityId, activityType, attempt, workflowExecution } }) => ({
    inbound: {
      async execute(input, next) {
        if (attempt < REPORT_FROM || !workflowExecution) return next(input);
        const { workflowId, runId } = workflowExecution;
        const id = `${workflowId}/${runId}/${activityId}`;
        const tell = (retrying: Retrying | null): Promise<void> =>
          report(client, workflowId, { id, retrying });
        if (isReported(attempt)) {
          const lastFailure = await failureOf(client, workflowId, activityId);
          console.error(
            `${activityType} of ${workflowId}: attempt ${attempt}; the last one failed: ${lastFailure}`,
          );
          await tell({ activity: activityType, workflow: workflowId, attempts: attempt, lastFailure });
        }
        try {
          const result = await next(input);
          await tell(null);
          return result;
        } catch (error) {
          const cancelled = Context.current().cancellationSignal.aborted;
          if (cancelled || (error instanceof ApplicationFailure && error.nonRetryable)) await tell(null);
          throw error;
        }
      },
    },
  });
}

/** Of the attempt before this one. */
async function failureOf(client: Client, workflowId: string, activityId: string): Promise<string> {
  try {
    const { raw } = await client.workflow.getHandle(workflowId).describe();
    const pending = raw.pendingActivities?.find((activity) => activity.activityId === activityId);
    return (pending?.lastFailure?.message ?? 'unknown').slice(0, LONGEST_FAILURE);
  } catch (error) {
    return `unknown (${messageOf(error)})`;
  }
}

/** To the run that the workflow belongs to; a workflow without one has nobody to tell but the log. */
async function report(client: Client, workflowId: string, message: RetryReport): Promise<void> {
  try {
    const { raw } = await client.workflow.getHandle(workflowId).describe();
    const root = raw.workflowExecutionInfo?.rootExecution?.workflowId ?? workflowId;
    const handle = client.workflow.getHandle(root);
    if ((await handle.describe()).type === 'curriculum') await handle.signal(activityRetried, message);
  } catch (error) {
    // A run that is over asks no more. That a report is lost stops no work.
    if (error instanceof WorkflowNotFoundError) return;
    console.error(`no report of retries could be made to the run of ${workflowId}: ${messageOf(error)}`);
  }
}
