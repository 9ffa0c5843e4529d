import { Command } from 'commander';
import { GradusError } from '../../core/errors.ts';
import { confirmName } from '../confirm.ts';
import { withConnectionFlags, withSources } from '../connection.ts';
import type { ConnectionOptions } from '../connection.ts';
import { note, print } from '../printable.ts';

/** A person who sees nothing for longer wonders. */
const SLOW_MS = 3000;

/** `gradus delete RUN`: all that Temporal and the store have of a run, after asking. */
export function deleteCommand(): Command {
  return withConnectionFlags(new Command('delete'))
    .argument('<run>', 'its name in the store, or the id of a workflow that got no name')
    .option('--yes <run>', "the run's name again, to confirm without a prompt")
    .action((run: string, { yes, ...options }: ConnectionOptions & { yes?: string }) =>
      withSources(
        options,
        async (sources) => {
          const { deleteRun, planDeletion } = await import('../../runs/control/delete-run.ts');
          const { executions, objects, bytes, refusals } = await planDeletion(sources, run);
          print(
            `${run}: ${executions.length} executions of workflows in Temporal, ${objects.length} objects of ${(bytes / 2 ** 20).toFixed(1)} MiB in the store`,
          );
          if (refusals.length > 0) throw new GradusError('store', 'in-use', refusals.join('\n'));
          await confirmName(run, yes, 'All of it will be gone, checkpoints and episodes too.');
          // While somebody made up their mind another run may have begun with a checkpoint of it.
          const slow = setTimeout(() => {
            note('Temporal takes half a minute or so to delete what has only just ended …');
          }, SLOW_MS);
          try {
            await deleteRun(sources, await planDeletion(sources, run));
          } finally {
            clearTimeout(slow);
          }
          print(`${run} is deleted; verdicts of higher tiers are for all runs, and stay`);
        },
        { patient: true },
      ),
    );
}
