import type { Client, WorkflowHandle } from '@temporalio/client';
import { defaultPayloadConverter } from '@temporalio/common';
import type { Payload } from '@temporalio/common';

export type History = Awaited<ReturnType<WorkflowHandle['fetchHistory']>>;

export interface WorkflowHistory {
  workflowId: string;
  /** The workflow's type. */
  type: string;
  history: History;
  /** What the server holds for it. */
  bytes: number;
}

/**
 * The histories of a workflow and of all that came of it: children, their children, and what they continued as. They
 * are found through the histories themselves, since listings lag behind. Throws for a server that does not tell sizes.
 */
export async function* historiesFrom(
  client: Client,
  root: { workflowId: string; runId: string },
): AsyncGenerator<WorkflowHistory> {
  const waiting = [root];
  for (let at = waiting.pop(); at !== undefined; at = waiting.pop()) {
    const { workflowId, runId } = at;
    const handle = client.workflow.getHandle(workflowId, runId);
    const [history, { type, historySize }] = await Promise.all([handle.fetchHistory(), handle.describe()]);
    if (historySize === undefined)
      throw new Error('this Temporal server does not tell how large histories are');
    yield { workflowId, type, history, bytes: historySize };
    for (const event of history.events ?? []) {
      const child = event.childWorkflowExecutionStartedEventAttributes?.workflowExecution;
      if (child?.workflowId && child.runId)
        waiting.push({ workflowId: child.workflowId, runId: child.runId });
      const next = event.workflowExecutionContinuedAsNewEventAttributes?.newExecutionRunId;
      if (next) waiting.push({ workflowId, runId: next });
    }
  }
}

/** What was sent with a signal, each time, and when it arrived, epoch milliseconds. */
export function signalsOf(history: History, name: string): { at: number; value: unknown }[] {
  return (history.events ?? []).flatMap(({ eventTime, workflowExecutionSignaledEventAttributes: signal }) => {
    const payload = signal?.input?.payloads?.[0];
    if (signal?.signalName !== name || !payload || !eventTime) return [];
    const at = Number(eventTime.seconds) * 1000 + (eventTime.nanos ?? 0) / 1e6;
    return [{ at, value: defaultPayloadConverter.fromPayload(payload) }];
  });
}

/** What the workflow returned; undefined where it did not complete. */
export function resultOf(history: History): unknown {
  const completed = history.events?.at(-1)?.workflowExecutionCompletedEventAttributes;
  const payload = completed?.result?.payloads?.[0];
  return payload ? defaultPayloadConverter.fromPayload(payload) : undefined;
}

/** Every payload in a history, wherever it stands. */
export function* payloadsIn(value: unknown): Generator<Payload> {
  if (typeof value !== 'object' || value === null || value instanceof Uint8Array) return;
  if ('data' in value && value.data instanceof Uint8Array && 'metadata' in value) {
    yield value as Payload;
    return;
  }
  for (const part of Object.values(value)) yield* payloadsIn(part);
}
