import { WorkflowNotFoundError } from '@temporalio/client';
import type { Client } from '@temporalio/client';
import type { Durable } from './durable.ts';

export type RunWatchActivities = Durable<ReturnType<typeof createRunWatch>>;

/** A workflow, and the first execution of what continues as new under its id. */
export interface RunExecution {
  workflowId: string;
  firstRunId: string;
}

export function createRunWatch({ client }: { client: Client }) {
  return {
    /** Whether a run has ended, however it did: its own execution, not another one that has its id now. */
    async isRunOver({ workflowId, firstRunId }: RunExecution): Promise<boolean> {
      try {
        const { status, raw } = await client.workflow.getHandle(workflowId).describe();
        return status.name !== 'RUNNING' || raw.workflowExecutionInfo?.firstRunId !== firstRunId;
      } catch (error) {
        if (error instanceof WorkflowNotFoundError) return true;
        throw error;
      }
    },
  };
}
