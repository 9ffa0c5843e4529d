import type { Client } from '@temporalio/client';
import type { Decision } from '../../core/question.ts';

/** Tells a run something after the step in flight. Throws WorkflowNotFoundError where no such run goes on. */
export async function signalRun(
  client: Client,
  workflowId: string,
  signal: 'pause' | 'resume' | 'stop',
): Promise<void> {
  await client.workflow.getHandle(workflowId).signal(signal);
}

/**
 * Answers the question of this id, and no other one. Throws WorkflowUpdateFailedError, whose cause says why, where it is
 * not the one that is open, or the answer is none of its own.
 */
export function answerQuestion(
  client: Client,
  workflowId: string,
  answer: Decision,
  question: string,
): Promise<Decision> {
  return client.workflow
    .getHandle(workflowId)
    .executeUpdate<Decision, [Decision, string]>('decide', { args: [answer, question] });
}
