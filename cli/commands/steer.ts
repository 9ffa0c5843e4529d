import type { Client } from '@temporalio/client';
import { Command } from 'commander';
import { GradusError } from '../../core/errors.ts';
import { DECISIONS } from '../../core/question.ts';
import type { Decision } from '../../core/question.ts';
import { answered } from '../../runs/control/answered.ts';
import { confirmName } from '../confirm.ts';
import type { Progress } from '../../workflows/control/messages.ts';
import { withConnectionFlags, withSources } from '../connection.ts';
import type { ConnectionOptions } from '../connection.ts';
import { print } from '../printable.ts';

// What a run is told after the step in flight. The Temporal CLI does the same by the id of the workflow.

const RUN = 'its name in the store, or the id of its workflow';

const YES = "the run's name again, to confirm without a prompt";

const confirmStop = (run: string, yes: string | undefined): Promise<void> =>
  confirmName(run, yes, `${run} ends after the step in flight, for good.`);

const DONE = {
  pause: 'it waits after the step in flight',
  resume: 'it goes on',
  stop: 'it ends after the step in flight, with its checkpoint',
} as const;

/** `gradus pause RUN`, `gradus resume RUN` and `gradus stop RUN`, which asks back. */
export const signal = (name: keyof typeof DONE) => (): Command => {
  const command = withConnectionFlags(new Command(name)).argument('<run>', RUN);
  if (name === 'stop') command.option('--yes <run>', YES);
  return command.action(async (run: string, { yes, ...options }: ConnectionOptions & { yes?: string }) => {
    await withRunning(options, run, async (client, workflowId) => {
      if (name === 'stop') await confirmStop(run, yes);
      const { signalRun } = await import('../../runs/control/control.ts');
      await answered(client, workflowId, () => signalRun(client, workflowId, name));
      print(`${run}: ${DONE[name]}`);
    });
  });
};

/** `gradus decide RUN [ANSWER]`: answers the question that a run waits with, or shows it. It asks back before it stops. */
export function decideCommand(): Command {
  return withConnectionFlags(new Command('decide'))
    .argument('<run>', RUN)
    .argument('[answer]', `one of the answers to the question: ${DECISIONS.join(', ')}`)
    .option('--question <id>', "the question's id; the answer is refused if the open question is another one")
    .option('--yes <run>', `of the answer "stop", ${YES}`)
    .action(
      (
        run: string,
        answer: string | undefined,
        { question, yes, ...options }: ConnectionOptions & { question?: string; yes?: string },
      ) =>
        withRunning(options, run, async (client, workflowId) => {
          const open =
            question === undefined || answer === undefined
              ? await openQuestion(client, workflowId)
              : question;
          if (answer === undefined) return;
          if (answer === 'stop') await confirmStop(run, yes);
          const { answerQuestion } = await import('../../runs/control/control.ts');
          await answered(client, workflowId, () =>
            answerQuestion(client, workflowId, answer as Decision, open),
          );
          print(`${run}: ${answer}`);
        }),
    );
}

/** Shows the question that is open, and gives its id. Throws GradusError('spec', 'answer') where there is none. */
async function openQuestion(client: Client, workflowId: string): Promise<string> {
  const { question } = await answered(client, workflowId, () =>
    client.workflow.getHandle(workflowId).query<Progress>('progress'),
  );
  if (question === null) throw new GradusError('spec', 'answer', 'the run waits for no decision');
  print(question.reason);
  for (const { answer, effect } of question.answers) print(`  ${answer}: ${effect}`);
  print(`  (question ${question.id})`);
  return question.id;
}

/** Finds the run that goes on, by whatever name. */
export async function withRunning<T>(
  options: ConnectionOptions,
  run: string,
  use: (client: Client, workflowId: string) => Promise<T>,
): Promise<T> {
  const { findRunning } = await import('../../runs/control/find-running.ts');
  return withSources(options, async ({ temporal }) => use(temporal, await findRunning(temporal, run)));
}
