import type { Client } from '@temporalio/client';
import { Command, InvalidArgumentError } from 'commander';
import { GradusError, messageOf } from '../../core/errors.ts';
import { closedBecause } from '../../workflows/review-state.ts';
import type { ReviewState } from '../../workflows/review-state.ts';
import { withConnectionFlags, withTemporal } from '../connection.ts';
import type { ConnectionOptions } from '../connection.ts';
import { print } from '../printable.ts';

/** `gradus review list|show|submit`: verdicts that people give. */
export function review(): Command {
  return new Command('review').addCommand(list()).addCommand(show()).addCommand(submit());
}

const list = (): Command =>
  withConnectionFlags(new Command('list'))
    .description('Lists the reviews that are open.')
    .action((options: ConnectionOptions) =>
      withTemporal(options, async (client) => {
        const query = `WorkflowType = 'review' AND ExecutionStatus = 'Running'`;
        let open = 0;
        for await (const { workflowId } of client.workflow.list({ query })) {
          print(workflowId);
          open++;
        }
        if (open === 0) print('no review is open');
      }),
    );

const show = (): Command =>
  withConnectionFlags(new Command('show'))
    .description('Shows what is to be judged, and what has been said.')
    .argument('<review>', 'as `gradus review list` prints it')
    .action((id: string, options: ConnectionOptions) =>
      withTemporal(options, async (client) => {
        const state = await clearly(client, id, () =>
          client.workflow.getHandle(id).query<ReviewState>('review'),
        );
        print(JSON.stringify(state, null, 2));
      }),
    );

const submit = (): Command =>
  withConnectionFlags(new Command('submit'))
    .description('Gives a verdict.')
    .argument('<review>')
    .requiredOption('--reviewer <name>', 'who judges')
    .requiredOption('--score <number>', 'from 0, a clear no, to 1, a clear yes', (text) => {
      if (text.trim() === '' || Number.isNaN(Number(text))) throw new InvalidArgumentError('not a number');
      return Number(text);
    })
    .option('--comment <text>')
    .action(
      (
        id: string,
        {
          reviewer,
          score,
          comment,
          ...options
        }: ConnectionOptions & { reviewer: string; score: number; comment?: string },
      ) =>
        withTemporal(options, async (client) => {
          const opinion = { reviewer, score, ...(comment !== undefined && { comment }) };
          const { opinions, reviewers } = await clearly(client, id, () =>
            client.workflow
              .getHandle(id)
              .executeUpdate<ReviewState, [typeof opinion]>('submitVerdict', { args: [opinion] }),
          );
          print(`thank you: ${opinions.length} of ${reviewers} reviewer(s) have answered`);
        }),
    );

/** Throws GradusError('verifier', 'no-review' | 'review'). */
async function clearly<T>(client: Client, id: string, operation: () => Promise<T>): Promise<T> {
  try {
    return await operation();
  } catch (error) {
    const { WorkflowNotFoundError, WorkflowUpdateFailedError } = await import('@temporalio/client');
    if (error instanceof WorkflowUpdateFailedError) {
      throw new GradusError('verifier', 'review', messageOf(error.cause ?? error), { cause: error });
    }
    if (!(error instanceof WorkflowNotFoundError)) throw error;
    throw new GradusError(
      'verifier',
      'no-review',
      `${await whyNotOpen(client, id)}; "gradus review list" shows those that are open`,
      { cause: error },
    );
  }
}

/** A review that is over still tells what it came to. */
async function whyNotOpen(client: Client, id: string): Promise<string> {
  try {
    const { verdict } = await client.workflow.getHandle(id).query<ReviewState>('review');
    if (verdict !== null) return closedBecause(verdict);
  } catch (error) {
    const { WorkflowNotFoundError } = await import('@temporalio/client');
    if (!(error instanceof WorkflowNotFoundError)) throw error;
  }
  return `there is no review "${id}"`;
}
