import { Command } from 'commander';
import { GradusError } from '../../core/errors.ts';
import { readRuns } from '../../runs/overview/runs.ts';
import { withConnectionFlags, withSources } from '../connection.ts';
import type { ConnectionOptions } from '../connection.ts';
import { wholeFrom } from '../numbers.ts';
import { note, print } from '../printable.ts';
import { printJson } from '../json/print-json.ts';

/** A person waits longer for a list than a page does that comes again, milliseconds. */
const PATIENCE_MS = 15_000;

/** `gradus runs`: what runs there are, those that wait for a person first. */
export function runsCommand(): Command {
  return withConnectionFlags(new Command('runs'))
    .option('--limit <number>', 'at most this many runs', wholeFrom(1), 50)
    .option('--json', 'one JSON object a line')
    .action((options: ConnectionOptions & { limit: number; json?: boolean }) =>
      withSources(options, async (sources) => {
        const { rows, total, problems, away } = await readRuns(sources, {
          limit: options.limit,
          patienceMs: PATIENCE_MS,
        });
        // Each of them says what to do.
        if (away.length === 2) throw new GradusError('infra', 'unreachable', problems.join('\n'));
        if (options.json === true) for (const row of rows) printJson('runs', row);
        else if (rows.length > 0) {
          const { runsTable } = await import('../runs-table.ts');
          print(runsTable(rows, Date.now()));
        } else if (problems.length === 0) print('there are no runs');
        for (const problem of problems) note(problem);
        if (total > rows.length) note(`${rows.length} of ${total}; --limit ${total} shows all`);
      }),
    );
}
