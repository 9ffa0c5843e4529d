import type { Client } from '@temporalio/client';
import type { StoredChange, RunChange } from '../../core/run-change.ts';

/**
 * Changes limits of a run that goes on, from the next step on; gives the change as it lies in the run's record. Throws
 * WorkflowUpdateFailedError, whose cause says why it is refused, and WorkflowNotFoundError where no such run goes on.
 */
export function changeRun(client: Client, workflowId: string, change: RunChange): Promise<StoredChange> {
  return client.workflow
    .getHandle(workflowId)
    .executeUpdate<StoredChange, [RunChange]>('change', { args: [change] });
}
