import type { Client } from '@temporalio/client';
import { describeExecution, isNotFound } from './describe.ts';
import type { HistoryEvent, DescribedActivity } from './temporal-values.ts';

/** One execution as Temporal has it now. */
export interface ExecutionHistory {
  workflowId: string;
  runId: string;
  events: HistoryEvent[];
  /** Whether all of the events were read. */
  whole: boolean;
  /** Of one that runs. */
  pending: DescribedActivity[];
  /** It goes on. */
  running: boolean;
}

/** Events that a page of an answer has. */
const AT_ONCE = 1000;

/** The events of an execution, at most so many; null where Temporal has none of it. */
export async function readHistory(
  temporal: Client,
  execution: { workflowId: string; runId?: string },
  most: number,
): Promise<ExecutionHistory | null> {
  const { workflowId } = execution;
  const described = await describeExecution(temporal, execution);
  // A history without a run's id is of the newest: which one that is must not change while its pages are read.
  const runId = described?.workflowExecutionInfo?.execution?.runId;
  if (!described || !runId) return null;
  const events: HistoryEvent[] = [];
  let nextPageToken: Uint8Array | null | undefined;
  try {
    do {
      const page: HistoryPage = await temporal.workflowService.getWorkflowExecutionHistory({
        namespace: temporal.options.namespace,
        execution: { workflowId, runId },
        maximumPageSize: Math.min(AT_ONCE, most - events.length),
        ...(nextPageToken && { nextPageToken }),
      });
      events.push(...(page.history?.events ?? []));
      ({ nextPageToken } = page);
    } while (nextPageToken?.length && events.length < most);
  } catch (error) {
    if (isNotFound(error)) return null;
    throw error;
  }
  // It may have ended since it was described.
  const running = Number(described.workflowExecutionInfo?.status) === RUNNING && !events.some(isClose);
  return {
    workflowId,
    runId,
    events,
    whole: !nextPageToken?.length,
    pending: running ? (described.pendingActivities ?? []) : [],
    running,
  };
}
const RUNNING = 1;
type HistoryPage = Awaited<ReturnType<Client['workflowService']['getWorkflowExecutionHistory']>>;

const isClose = (event: HistoryEvent): boolean =>
  Boolean(
    event.workflowExecutionCompletedEventAttributes ??
    event.workflowExecutionFailedEventAttributes ??
    event.workflowExecutionTimedOutEventAttributes ??
    event.workflowExecutionCanceledEventAttributes ??
    event.workflowExecutionTerminatedEventAttributes ??
    event.workflowExecutionContinuedAsNewEventAttributes,
  );
