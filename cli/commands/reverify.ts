import type { WorkflowFailedError } from '@temporalio/client';
import { Command } from 'commander';
import { counted } from '../../core/counted.ts';
import { GradusError } from '../../core/errors.ts';
import { ids, QUEUES } from '../../core/names.ts';
import type { reverify as workflow, ReverifyInput } from '../../workflows/ladder/reverify.ts';
import { withConnectionFlags, withTemporal } from '../connection.ts';
import type { ConnectionOptions } from '../connection.ts';
import { print } from '../printable.ts';

/** `gradus reverify RUN --verifier NAME --version N`: stored episodes judged anew, without rolling them out again. */
export function reverifyCommand(): Command {
  return withConnectionFlags(new Command('reverify'))
    .argument('<run>')
    .requiredOption('--verifier <name>', 'the verifier that judges')
    .requiredOption('--version <version>', 'the version that the workers have')
    .option('--stage <name>', 'only of this stage; "before" and "after" are the report\'s (default: all)')
    .action((run: string, options: ConnectionOptions & Omit<ReverifyInput, 'run'>) =>
      withTemporal(options, async (client) => {
        const { verifier, version, stage } = options;
        const input = { run, verifier, version, ...(stage !== undefined && { stage }) };
        const { computed, seconds, scores } = await client.workflow
          .execute<typeof workflow>('reverify', {
            workflowId: ids.reverify(input),
            taskQueue: QUEUES.orchestrator,
            args: [input],
          })
          .catch(async (error: unknown) => {
            const { WorkflowFailedError } = await import('@temporalio/client');
            throw error instanceof WorkflowFailedError ? refused(error) : error;
          });
        const spent = `${counted(computed, 'verdict')} computed in ${seconds.toFixed(1)} s`;
        print(`${spent}; the scores of all episodes are in ${scores}`);
      }),
    );
}

/** What the activity said that could not go on, e.g. that there is no such verifier. */
function refused(error: WorkflowFailedError): GradusError {
  let at: Error = error;
  while (at.cause instanceof Error) at = at.cause;
  return new GradusError('verifier', 'reverify', at.message, { cause: error });
}
