import { Command } from 'commander';
import { QUEUES } from '../../core/names.ts';
import type { reverify as workflow } from '../../workflows/reverify.ts';
import { withConnectionFlags, withTemporal } from '../connection.ts';
import type { ConnectionOptions } from '../connection.ts';

/** `gradus reverify RUN --verifier NAME --version N`: stored episodes judged anew, without rolling them out again. */
export function reverify(): Command {
  return withConnectionFlags(new Command('reverify'))
    .description('Judges the stored episodes of a run anew, without rolling them out again.')
    .argument('<run>')
    .requiredOption('--verifier <name>')
    .requiredOption('--version <version>', 'the one that the workers have')
    .action((run: string, options: ConnectionOptions & { verifier: string; version: string }) =>
      withTemporal(options, async (client) => {
        const { verifier, version } = options;
        const { computed, scores } = await client.workflow.execute<typeof workflow>('reverify', {
          workflowId: `${run}/reverify/${verifier}/${version}`,
          taskQueue: QUEUES.orchestrator,
          args: [{ run, verifier, version }],
        });
        console.log(`${computed} verdict(s) computed; the scores of all episodes are in ${scores}`);
      }),
    );
}
