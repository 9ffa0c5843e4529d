import { Command, InvalidArgumentError } from 'commander';
import { counted } from '../../core/counted.ts';
import { withConnectionFlags, withSources, withTemporal } from '../connection.ts';
import type { ConnectionOptions } from '../connection.ts';
import { note, print } from '../printable.ts';
import { printJson } from '../json/print-json.ts';
import { answeredText, reviewLines } from '../review-lines.ts';

/** Without workers nobody shows a review. */
const PATIENCE_MS = 20_000;

/** `gradus review list|show|submit|withdraw|close`: verdicts that people give. */
export function reviewCommand(): Command {
  return new Command('review')
    .addCommand(list())
    .addCommand(show())
    .addCommand(submit())
    .addCommand(withdraw())
    .addCommand(close());
}

const list = (): Command =>
  withConnectionFlags(new Command('list'))
    .description('Lists open reviews, those with the nearest deadline first.')
    .option('--json', 'one JSON object a line')
    .action((options: ConnectionOptions & { json?: boolean }) =>
      withSources(options, async ({ temporal }) => {
        const { openReviews } = await import('../../runs/ladder/reviews.ts');
        const { reviews, more } = await openReviews(temporal);
        if (options.json === true) {
          for (const one of reviews) printJson('review-list', one);
          return;
        }
        if (reviews.length === 0) print('no review is open');
        for (const one of reviews) for (const line of reviewLines(one, Date.now())) print(line);
        if (more) note('there are more');
      }),
    );

const show = (): Command =>
  withConnectionFlags(new Command('show'))
    .description('Shows the subject of a review, and the opinions so far.')
    .argument('<review>', 'as `gradus review list` prints it')
    .action((id: string, options: ConnectionOptions) =>
      withSources(options, async ({ temporal }) => {
        const { showReview } = await import('../../runs/control/review.ts');
        print(JSON.stringify(await showReview(temporal, id, { patienceMs: PATIENCE_MS }), null, 2));
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
          const { submitOpinion } = await import('../../runs/control/review.ts');
          const { opinions, reviewers } = await submitOpinion(client, id, opinion);
          print(`thank you: ${answeredText(opinions, reviewers)}`);
        }),
    );

const withdraw = (): Command =>
  withConnectionFlags(new Command('withdraw'))
    .description("Withdraws a reviewer's verdict, while the review is open.")
    .argument('<review>')
    .requiredOption('--reviewer <name>', 'whose verdict it is, or who closes the review')
    .option('--reason <text>')
    .option('--all', 'close the whole review without a verdict')
    .action(
      (
        id: string,
        {
          reviewer,
          reason,
          all,
          ...options
        }: ConnectionOptions & { reviewer: string; reason?: string; all?: boolean },
      ) =>
        withTemporal(options, async (client) => {
          const { withdrawOpinion } = await import('../../runs/control/review.ts');
          const withdrawal = {
            reviewer,
            ...(reason !== undefined && { reason }),
            ...(all === true && { all }),
          };
          const { opinions, reviewers } = await withdrawOpinion(client, id, withdrawal);
          print(
            all === true
              ? 'the review is closed without a verdict'
              : `withdrawn: ${answeredText(opinions, reviewers)}`,
          );
        }),
    );

const close = (): Command =>
  withConnectionFlags(new Command('close'))
    .description(
      'Closes the open reviews of a run that is over, except those that other runs or sweeps wait for.',
    )
    .argument('<run>', 'its name in the store')
    .requiredOption('--reviewer <name>', 'who closes them')
    .option('--reason <text>')
    .action(
      (
        run: string,
        { reviewer, reason, ...options }: ConnectionOptions & { reviewer: string; reason?: string },
      ) =>
        withTemporal(options, async (client) => {
          const { closeReviewsOf } = await import('../../runs/control/close-reviews.ts');
          const by = { reviewer, ...(reason !== undefined && { reason }) };
          const { closed, left } = await closeReviewsOf(client, run, by, { patienceMs: PATIENCE_MS });
          print(`closed without a verdict: ${counted(closed.length, 'review')} of ${run}`);
          for (const { id, why } of left) note(`still open: ${id}: ${why}`);
          if (left.length > 0) process.exitCode = 1;
        }),
    );
