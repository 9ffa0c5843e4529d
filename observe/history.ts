import { WorkflowNotFoundError } from '@temporalio/client';
import type { Client } from '@temporalio/client';
import type { HistoryEvent, PendingActivity } from './temporal-values.ts';

/** One execution as Temporal has it now. */
export interface ExecutionHistory {
  workflowId: string;
  runId: string;
  events: HistoryEvent[];
  /** Whether all of the events were read. */
  whole: boolean;
  /** Of one that runs. */
  pending: PendingActivity[];
  /** It goes on. */
  running: boolean;
}

/** Events that a page of an answer has. */
const AT_ONCE = 1000;

/** The events of an execution, at most so many; null where Temporal has none of it. */
export async function readHistory(
  client: Client,
  execution: { workflowId: string; runId?: string },
  most: number,
): Promise<ExecutionHistory | null> {
  const { namespace } = client.options;
  const events: HistoryEvent[] = [];
  let nextPageToken: Uint8Array | null | undefined;
  try {
    // A history without a run's id is of the newest: which one that is must not change while its pages are read.
    const { runId, raw } = await client.workflow.getHandle(execution.workflowId, execution.runId).describe();
    const { workflowId } = execution;
    do {
      const page = await client.workflowService.getWorkflowExecutionHistory({
        namespace,
        execution: { workflowId, runId },
        maximumPageSize: Math.min(AT_ONCE, most - events.length),
        ...(nextPageToken && { nextPageToken }),
      });
      events.push(...(page.history?.events ?? []));
      ({ nextPageToken } = page);
    } while (nextPageToken?.length && events.length < most);
    const running = !events.some((event) => event.eventType !== null && isClose(event));
    return {
      workflowId,
      runId,
      events,
      whole: !nextPageToken?.length,
      pending: running ? (raw.pendingActivities ?? []) : [],
      running,
    };
  } catch (error) {
    if (error instanceof WorkflowNotFoundError || isNotFound(error)) return null;
    throw error;
  }
}

const isNotFound = (error: unknown): boolean => (error as { code?: unknown } | null)?.code === 5;

const isClose = (event: HistoryEvent): boolean =>
  Boolean(
    event.workflowExecutionCompletedEventAttributes ??
    event.workflowExecutionFailedEventAttributes ??
    event.workflowExecutionTimedOutEventAttributes ??
    event.workflowExecutionCanceledEventAttributes ??
    event.workflowExecutionTerminatedEventAttributes ??
    event.workflowExecutionContinuedAsNewEventAttributes,
  );
