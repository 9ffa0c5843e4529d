import { executeChild } from '@temporalio/workflow';

export * from '../../workflows/index.ts';

/** In place of a run: starts one workflow of its own and waits for it. */
export const runOf = (workflowType: string, workflowId: string, input: unknown): Promise<unknown> =>
  executeChild(workflowType, { workflowId, args: [input] });
