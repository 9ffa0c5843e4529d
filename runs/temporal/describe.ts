import type { Client } from '@temporalio/client';

export type Description = Awaited<ReturnType<Client['workflowService']['describeWorkflowExecution']>>;

const NOT_FOUND = 5;

/** Whether Temporal answers that it has no such thing. */
export const isNotFound = (error: unknown): boolean =>
  (error as { code?: unknown } | null)?.code === NOT_FOUND;

/**
 * An execution, its newest one where none is named, as it comes over the wire: a memo that no converter reads must not
 * hide it. null where Temporal has none.
 */
export async function describeExecution(
  temporal: Client,
  execution: { workflowId: string; runId?: string },
): Promise<Description | null> {
  const { namespace } = temporal.options;
  try {
    return await temporal.workflowService.describeWorkflowExecution({ namespace, execution });
  } catch (error) {
    if (isNotFound(error)) return null;
    throw error;
  }
}
