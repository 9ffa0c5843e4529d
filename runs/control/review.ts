import {
  QueryNotRegisteredError,
  ServiceError,
  WorkflowNotFoundError,
  WorkflowUpdateFailedError,
} from '@temporalio/client';
import type { Client } from '@temporalio/client';
import { GradusError, messageOf } from '../../core/errors.ts';
import { commandLine } from '../../core/installation.ts';
import { closedBecause } from '../../core/ladder/opinions.ts';
import type { Opinion, Withdrawal } from '../../core/ladder/opinions.ts';
import { queryWorkflow } from '../temporal/ask.ts';
import { isTemporalUnreachable, temporalError } from '../temporal/temporal-away.ts';
import type { ReviewState } from '../../workflows/ladder/review-state.ts';

interface Options {
  /** How long the review is waited for; without it as long as it takes, for without workers nobody answers. */
  patienceMs?: number;
}

/** What is to be judged, and what has been said. Throws GradusError('verifier', 'no-review' | 'no-answer'). */
export const showReview = (client: Client, id: string, options: Options = {}): Promise<ReviewState> =>
  clearly(client, id, options, () => queryWorkflow<ReviewState>(client, id, 'review'));

/**
 * Gives a verdict. Throws GradusError('verifier', 'review'), which says why it is refused, and what `showReview` throws;
 * after 'no-answer' it may count yet.
 */
export const submitOpinion = (
  client: Client,
  id: string,
  opinion: Opinion,
  options: Options = {},
): Promise<ReviewState> =>
  clearly(client, id, options, () =>
    client.workflow.getHandle(id).executeUpdate<ReviewState, [Opinion]>('submitVerdict', { args: [opinion] }),
  );

/** Takes back what a reviewer has said, or the whole review. Throws as `submitOpinion`. */
export const withdrawOpinion = (
  client: Client,
  id: string,
  withdrawal: Withdrawal,
  options: Options = {},
): Promise<ReviewState> =>
  clearly(client, id, options, () =>
    client.workflow
      .getHandle(id)
      .executeUpdate<ReviewState, [Withdrawal]>('withdraw', { args: [withdrawal] }),
  );

async function clearly<T>(
  client: Client,
  id: string,
  { patienceMs }: Options,
  operation: () => Promise<T>,
): Promise<T> {
  const deadline = patienceMs === undefined ? null : Date.now() + patienceMs;
  try {
    return deadline === null ? await operation() : await client.withDeadline(deadline, operation);
  } catch (error) {
    if (error instanceof WorkflowUpdateFailedError) {
      throw new GradusError('verifier', 'review', messageOf(error.cause ?? error), { cause: error });
    }
    if (error instanceof QueryNotRegisteredError)
      throw noReview(`"${id}" is a workflow, and no review`, error);
    if (error instanceof WorkflowNotFoundError) throw noReview(await whyNotOpen(client, id), error);
    if (isTemporalUnreachable(error)) throw temporalError(client, error);
    // Away, or nobody there who could answer: whoever looks at a page is told, and others wait.
    const isAway = error instanceof ServiceError || Date.now() >= (deadline ?? Infinity);
    if (deadline === null || !isAway) throw error;
    throw new GradusError(
      'verifier',
      'no-answer',
      `the review "${id}" does not answer: check that Temporal and an orchestrator run, and then look at the review again`,
      { retryable: true, cause: error },
    );
  }
}

const noReview = (why: string, cause: unknown): GradusError =>
  new GradusError(
    'verifier',
    'no-review',
    `${why}; "${commandLine('review list')}" shows those that are open`,
    {
      cause,
    },
  );

/** A review that is over still tells what it came to. */
async function whyNotOpen(client: Client, id: string): Promise<string> {
  try {
    const { verdict } = await queryWorkflow<ReviewState>(client, id, 'review');
    if (verdict !== null) return closedBecause(verdict);
  } catch (error) {
    if (!(error instanceof WorkflowNotFoundError)) throw error;
  }
  return `there is no review "${id}"`;
}
