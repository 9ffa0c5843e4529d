import { Command } from 'commander';
import { assertRun } from '../../store/run/find-run.ts';
import { readLedger } from '../../store/ladder/ledger.ts';
import { addEntries } from '../../core/ladder/ledger.ts';
import { withConnectionFlags, withStoreOf } from '../connection.ts';
import type { ConnectionOptions } from '../connection.ts';
import { noteDamage, print } from '../printable.ts';
import { printJson } from '../json/print-json.ts';
import { textTable } from '../../runs/text-table.ts';

/** `gradus ledger RUN`: what the verification ladder of a run decided and spent. */
export function ledgerCommand(): Command {
  return withConnectionFlags(new Command('ledger'))
    .argument('<run>')
    .option('--json', 'every entry, one JSON object a line')
    .action((run: string, options: ConnectionOptions & { json?: boolean }) =>
      withStoreOf(options, async (store) => {
        await assertRun(store, run);
        const damaged: string[] = [];
        const entries = await readLedger(store, run, { damaged });
        noteDamage(damaged);
        if (options.json === true) {
          for (const entry of entries) printJson('ledger', entry);
          return;
        }
        const rows: (string | number)[][] = [];
        for (const [verifier, sum] of Object.entries(addEntries({}, entries))) {
          const { escalated, deferred, accepted, rejected, computed, shared, abstained, late, lost } = sum;
          const counts = [escalated, deferred, accepted, rejected, computed, shared, abstained];
          const asked = sum.openSeconds === 0 ? '–' : sum.openSeconds.toFixed(0);
          rows.push([
            verifier,
            ...counts,
            late,
            sum.afterRun,
            lost,
            sum.seconds.toFixed(2),
            asked,
            sum.usd.toFixed(4),
          ]);
        }
        print(
          entries.length === 0
            ? `${run} has no ledger in this store`
            : textTable(
                [
                  'verifier',
                  'escalated',
                  'deferred',
                  'accepted',
                  'rejected',
                  'computed',
                  'shared',
                  'abstained',
                  'late',
                  'after the run',
                  'lost',
                  's',
                  'reviews open, s',
                  'US$',
                ],
                rows,
                {
                  compact: true,
                  optional: ['lost', 'after the run', 'shared', 'abstained', 'late', 's', 'computed'],
                },
              ),
        );
      }),
    );
}
