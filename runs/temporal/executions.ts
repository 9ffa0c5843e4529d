import type { Client } from '@temporalio/client';
import { describeExecution } from './describe.ts';
import { firstValue, millisOf } from './temporal-values.ts';

// What Temporal says of workflows whether or not there are workers. It is read as it comes over the wire: whoever may start
// a workflow may give it a memo that no converter reads, and one of those must not hide all others.

const STATUS = {
  1: 'running',
  2: 'completed',
  3: 'failed',
  4: 'cancelled',
  5: 'terminated',
  6: 'continued',
  7: 'timed-out',
  8: 'paused',
} as const;
type ExecutionStatus = (typeof STATUS)[keyof typeof STATUS] | 'unknown';

export interface Execution {
  workflowId: string;
  runId: string;
  type: string;
  status: ExecutionStatus;
  /** Of the execution; one that continues as new is another one. Epoch milliseconds. */
  startedAt: number;
  closedAt: number | null;
  /** Of the workflow that it is a part of; its own where it is a part of none. */
  rootId: string;
  /** Search attributes that can be read. */
  attributes: Readonly<Record<string, unknown>>;
}

type ListResponse = Awaited<ReturnType<Client['workflowService']['listWorkflowExecutions']>>;
export type RawExecution = ListResponse['executions'][number];

/** A text as the lists of Temporal take it. */
export const quotedInQuery = (text: string): string =>
  `"${text.replaceAll('\\', '\\\\').replaceAll('"', '\\"')}"`;

/** The newest `limit` at most that a query finds, and whether there are more. Throws what the server answers. */
export async function listExecutions(
  temporal: Client,
  query: string,
  { limit = 1000, timeoutMs = 5000 }: { limit?: number; timeoutMs?: number } = {},
): Promise<{ executions: Execution[]; more: boolean }> {
  const found: Execution[] = [];
  return temporal.withDeadline(Date.now() + timeoutMs, async () => {
    let nextPageToken: Uint8Array | undefined;
    for (;;) {
      const page: ListResponse = await temporal.workflowService.listWorkflowExecutions({
        namespace: temporal.options.namespace,
        query,
        pageSize: Math.min(1000, limit - found.length),
        ...(nextPageToken && { nextPageToken }),
      });
      found.push(...page.executions.map(readExecution));
      nextPageToken = page.nextPageToken ?? undefined;
      const more = nextPageToken !== undefined && nextPageToken.length > 0;
      if (!more || found.length >= limit) return { executions: found, more };
    }
  });
}

/** The newest execution of a workflow's id; null where Temporal has none. Throws what the server answers. */
export async function executionOf(temporal: Client, workflowId: string): Promise<Execution | null> {
  const info = (await describeExecution(temporal, { workflowId }))?.workflowExecutionInfo;
  return info ? readExecution(info) : null;
}

export function readExecution(raw: RawExecution): Execution {
  const workflowId = raw.execution?.workflowId ?? '';
  return {
    workflowId,
    runId: raw.execution?.runId ?? '',
    type: raw.type?.name ?? '',
    status: STATUS[(raw.status ?? 0) as keyof typeof STATUS] ?? 'unknown',
    startedAt: millisOf(raw.startTime) ?? 0,
    closedAt: millisOf(raw.closeTime),
    rootId: raw.rootExecution?.workflowId ?? workflowId,
    attributes: Object.fromEntries(
      Object.entries(raw.searchAttributes?.indexedFields ?? {}).flatMap(([name, payload]) => {
        const value = firstValue({ payloads: [payload] });
        return value === undefined ? [] : [[name, value]];
      }),
    ),
  };
}

export const textAttribute = ({ attributes }: Execution, name: string): string | null =>
  typeof attributes[name] === 'string' ? attributes[name] : null;

export const numberAttribute = ({ attributes }: Execution, name: string): number | null =>
  typeof attributes[name] === 'number' ? attributes[name] : null;
