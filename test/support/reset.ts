import type { WorkflowHandle } from '@temporalio/client';

/** Resets the newest execution to where it had done nothing, as `temporal workflow reset --type FirstWorkflowTask` does. */
export async function resetToBegin(handle: WorkflowHandle): Promise<void> {
  const { client, workflowId } = handle;
  const { runId } = await handle.describe();
  const { events } = await client.getHandle(workflowId, runId).fetchHistory();
  const begun = events!.find((event) => event.workflowTaskCompletedEventAttributes)!;
  await client.workflowService.resetWorkflowExecution({
    namespace: 'default',
    workflowExecution: { workflowId, runId },
    reason: 'to do it again',
    workflowTaskFinishEventId: begun.eventId!,
    requestId: runId,
  });
}
