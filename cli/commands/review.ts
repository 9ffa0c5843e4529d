import { Command, InvalidArgumentError } from 'commander';
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
        const { showReview } = await import('../../operate/review.ts');
        print(JSON.stringify(await showReview(client, id), null, 2));
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
          const { submitOpinion } = await import('../../operate/review.ts');
          const { opinions, reviewers } = await submitOpinion(client, id, opinion);
          print(`thank you: ${opinions.length} of ${reviewers} reviewer(s) have answered`);
        }),
    );
