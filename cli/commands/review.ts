import { WorkflowNotFoundError, WorkflowUpdateFailedError } from '@temporalio/client';
import { Command, InvalidArgumentError } from 'commander';
import { GradusError, messageOf } from '../../core/errors.ts';
import type { ReviewState } from '../../workflows/review.ts';
import { withConnectionFlags, withTemporal } from '../connection.ts';
import type { ConnectionOptions } from '../connection.ts';

/** `gradus review list|show|submit`: verdicts that people give. */
export function review(): Command {
  return new Command('review')
    .description('Verdicts that people give.')
    .addCommand(list())
    .addCommand(show())
    .addCommand(submit());
}

const list = (): Command =>
  withConnectionFlags(new Command('list'))
    .description('Lists the reviews that are open.')
    .action((options: ConnectionOptions) =>
      withTemporal(options, async (client) => {
        const query = `WorkflowType = 'review' AND ExecutionStatus = 'Running'`;
        for await (const { workflowId } of client.workflow.list({ query })) console.log(workflowId);
      }),
    );

const show = (): Command =>
  withConnectionFlags(new Command('show'))
    .description('Shows what is to be judged, and what has been said.')
    .argument('<review>', 'as `gradus review list` prints it')
    .action((id: string, options: ConnectionOptions) =>
      withTemporal(options, async (client) => {
        const state = await clearly(id, () => client.workflow.getHandle(id).query<ReviewState>('review'));
        console.log(JSON.stringify(state, null, 2));
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
          const { opinions, reviewers } = await clearly(id, () =>
            client.workflow
              .getHandle(id)
              .executeUpdate<ReviewState, [typeof opinion]>('submitVerdict', { args: [opinion] }),
          );
          console.log(`thank you: ${opinions.length} of ${reviewers} reviewer(s) have answered`);
        }),
    );

/** Throws GradusError('verifier', 'no-review' | 'review'). */
async function clearly<T>(id: string, operation: () => Promise<T>): Promise<T> {
  try {
    return await operation();
  } catch (error) {
    if (error instanceof WorkflowUpdateFailedError) {
      throw new GradusError('verifier', 'review', messageOf(error.cause ?? error), { cause: error });
    }
    if (!(error instanceof WorkflowNotFoundError)) throw error;
    throw new GradusError(
      'verifier',
      'no-review',
      `no review "${id}" is open: it does not exist, is decided, or its deadline has passed; "gradus review list" shows those that are`,
      { cause: error },
    );
  }
}
