import { Command } from 'commander';
import { findCheckpoints } from '../../store/training/find-checkpoints.ts';
import { assertRun } from '../../store/run/find-run.ts';
import { withConnectionFlags, withStoreOf } from '../connection.ts';
import type { ConnectionOptions } from '../connection.ts';
import { print } from '../printable.ts';
import { printJson } from '../json/print-json.ts';
import { textTable } from '../../runs/text-table.ts';

/** `gradus checkpoints RUN`: what of a run is in the store. */
export function checkpointsCommand(): Command {
  return withConnectionFlags(new Command('checkpoints'))
    .argument('<run>')
    .option('--json', 'one JSON object a line')
    .action((run: string, options: ConnectionOptions & { json?: boolean }) =>
      withStoreOf(options, async (store) => {
        await assertRun(store, run);
        const found = await findCheckpoints(store, run);
        if (options.json === true) {
          for (const { ref, manifest } of found.checkpoints)
            printJson('checkpoints', { ...ref, stage: manifest.stage });
          return;
        }
        const rows: (string | number)[][] = [];
        for (const { ref, manifest } of found.checkpoints) {
          rows.push([
            ref.step,
            manifest.stage,
            ref.weights.slice(0, 12),
            manifest.backend,
            ref.manifest.key.replace(/\/manifest\.json$/, ''),
          ]);
        }
        print(
          found.checkpoints.length === 0
            ? `${run} has no checkpoint in this store`
            : textTable(['step', 'stage', 'weights', 'learner', 'object'], rows),
        );
        for (const { folder, reason } of found.incomplete) print(`incomplete: ${folder}: ${reason}`);
      }),
    );
}
