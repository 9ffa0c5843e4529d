import type { Client } from '@temporalio/client';
import { GradusError, messageOf } from '../../core/errors.ts';
import { commandLine } from '../../core/installation.ts';
import { temporalError } from '../temporal/temporal-away.ts';

const ANSWERS_WITHIN_MS = 20_000;

/**
 * What a run answers, which may take a worker. Throws GradusError('spec', 'refused') in the words of who refuses,
 * GradusError('spec', 'over'), GradusError('infra', 'no-answer'), and as `temporalError` has it.
 */
export async function answered<T>(
  client: Client,
  workflowId: string,
  operation: () => Promise<T>,
  patienceMs = ANSWERS_WITHIN_MS,
): Promise<T> {
  const deadline = Date.now() + patienceMs;
  try {
    return await client.withDeadline(deadline, operation);
  } catch (error) {
    const { WorkflowNotFoundError, WorkflowUpdateFailedError } = await import('@temporalio/client');
    if (error instanceof WorkflowUpdateFailedError)
      throw new GradusError('spec', 'refused', messageOf(error.cause ?? error), { cause: error });
    if (error instanceof WorkflowNotFoundError)
      throw new GradusError(
        'spec',
        'over',
        `${workflowId} does not go on any more: there is nothing to steer`,
        {
          cause: error,
        },
      );
    if (Date.now() < deadline) throw temporalError(client, error);
    throw new GradusError(
      'infra',
      'no-answer',
      `no worker has answered for ${workflowId} in ${patienceMs / 1000} s: "${commandLine(`why ${workflowId}`)}" says why. The change may still be made`,
      { retryable: true, cause: error },
    );
  }
}
