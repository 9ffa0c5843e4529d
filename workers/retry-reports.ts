import { Context } from '@temporalio/activity';
import { Client, WorkflowNotFoundError } from '@temporalio/client';
import { ApplicationFailure } from '@temporalio/common';
import type { ActivityInterceptorsFactory, NativeConnection } from '@temporalio/worker';
import { messageOf } from '../core/errors.ts';
import type { RetryReport, Retrying } from '../core/retrying.ts';
import { activityRetried } from '../workflows/control/messages.ts';

/** The first attempt that is worth a word; the next ones are twice as far, since each is an event in the run's history. */
const REPORT_FROM = 3;
/** Characters of a failure, so that it may pass through histories. */
const LONGEST_FAILURE = 300;

const isReported = (attempt: number): boolean => {
  const times = Math.log2(attempt / REPORT_FROM);
  return times >= 0 && Number.isInteger(times);
};

/** What has not been tried again for so long is tried by another worker. Retries are at most 15 s apart. */
const ELSEWHERE_MS = 60_000;

/** Activities of one kind that this worker tries again. */
class Kind {
  /** The most attempts that have been reported. */
  private reported = 0;
  /** By activity: since when it waits to be tried again; null while it is tried. */
  private readonly waiting = new Map<string, number | null>();

  /** Whether there is something to report, that the others of its kind have not said. */
  begin(id: string, attempt: number): boolean {
    this.dropOthers();
    if (this.waiting.size === 0) this.reported = 0;
    this.waiting.set(id, null);
    if (!isReported(attempt) || attempt <= this.reported) return false;
    this.reported = attempt;
    return true;
  }

  failed(id: string): void {
    this.waiting.set(id, Date.now());
  }

  /** It is not tried again. Whether that holds for all of its kind. */
  ended(id: string): boolean {
    this.waiting.delete(id);
    this.dropOthers();
    return this.waiting.size === 0;
  }

  private dropOthers(): void {
    for (const [id, since] of this.waiting) {
      if (since !== null && Date.now() - since > ELSEWHERE_MS) this.waiting.delete(id);
    }
  }
}

/**
 * Makes retries visible: from the third attempt on the worker's log and the run's `progress` say which activity is tried
 * again, how often, and why the last attempt failed, also where it was lost with its worker. Temporal itself retries
 * without a word. When a store is away, thousands may fail for the same reason, and a run takes a bounded number of
 * signals: those of one kind are reported as one, by the one that has been tried most often. Stands outside of
 * `failureInterceptor`, which says whether an error is the last one.
 */
export function retryReports(connection: NativeConnection, namespace: string): ActivityInterceptorsFactory {
  const client = new Client({ connection, namespace });
  const kinds = new Map<string, Kind>();
  return ({ info: { activityId, activityType, attempt, workflowExecution } }) => ({
    inbound: {
      async execute(input, next) {
        if (attempt < REPORT_FROM || !workflowExecution) return next(input);
        const { workflowId, runId } = workflowExecution;
        const id = `${workflowId}/${runId}/${activityId}`;
        const kindId = `${partOf(workflowId)}/${activityType}`;
        const kind = kinds.get(kindId) ?? new Kind();
        kinds.set(kindId, kind);
        const tell = (retrying: Retrying | null): Promise<void> =>
          report(client, workflowId, { id: kindId, retrying });
        const ended = async (): Promise<void> => {
          if (!kind.ended(id)) return;
          kinds.delete(kindId);
          await tell(null);
        };
        if (kind.begin(id, attempt)) {
          const lastFailure = await failureOf(client, workflowId, activityId);
          console.error(
            `${activityType} of ${workflowId}: attempt ${attempt}; the last one failed: ${lastFailure}`,
          );
          await tell({ activity: activityType, workflow: workflowId, attempts: attempt, lastFailure });
        }
        try {
          const result = await next(input);
          await ended();
          return result;
        } catch (error) {
          const cancelled = Context.current().cancellationSignal.aborted;
          if (cancelled || (error instanceof ApplicationFailure && error.nonRetryable)) await ended();
          else kind.failed(id);
          throw error;
        }
      },
    },
  });
}

/** The part of a run that a workflow belongs to: a stage, the ladder, its evaluations. */
const partOf = (workflowId: string): string => workflowId.split('/').slice(0, 2).join('/');

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
