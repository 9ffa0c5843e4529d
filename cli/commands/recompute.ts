import { Command } from 'commander';
import { withConnectionFlags, withStoreOf, withTemporal } from '../connection.ts';
import type { ConnectionOptions } from '../connection.ts';
import { note, print } from '../printable.ts';

interface RecomputeOptions extends ConnectionOptions {
  id?: string;
}

/** `gradus recompute RUN`: makes a run again from its spec and from what it has kept, and says where the two part. */
export function recomputeCommand(): Command {
  return withConnectionFlags(new Command('recompute'))
    .argument('<run>', 'a run, by its name or the id of its workflow')
    .option('--id <id>', "the workflow id of the run that is made (default: the run's, with -recomputed)")
    .action(async (name: string, { id, ...options }: RecomputeOptions) => {
      const [{ recomputationOf, startOrJoin }, { claimedName }, { resultWatched }, compare, words] =
        await Promise.all([
          import('../../runs/control/recompute.ts'),
          import('../../runs/control/start.ts'),
          import('../watch-run.ts'),
          import('../../runs/comparison/divergence.ts'),
          import('../../runs/comparison/divergence-words.ts'),
        ]);
      const runs = await withTemporal(options, async (temporal): Promise<[string, string]> => {
        const { run, spec } = await recomputationOf(temporal, name);
        const workflowId = id ?? `${run}-recomputed`;
        const handle = await startOrJoin(temporal, workflowId, spec);
        const made = (await claimedName(temporal, workflowId)) ?? workflowId;
        note(`${made} makes ${run} again; it goes on also when this command is ended`);
        const { end, stages } = await resultWatched(temporal, handle, note);
        if (end === 'stopped')
          note(`${made} ends here, and no more is compared: ${stages.at(-1)?.reason ?? 'it was stopped'}`);
        return [run, made];
      });
      const divergence = await withStoreOf(options, (store) => compare.divergenceOf(store, runs));
      for (const line of words.divergenceText(divergence)) print(line);
      if (divergence.parting !== null) process.exitCode = 1;
    });
}
