import type { LedgerEntry } from '../../core/ladder/ledger.ts';
import { ladderActivities } from '../activities.ts';

/** Entries that pass through the history at once. */
const PAGE = 100;

/**
 * Writes what a workflow has heard into a run's ledger, in pages of a writer who writes nothing else there; `heard` also
 * lets the run's ladder know it.
 */
export async function writeEntries(
  run: string,
  writer: string,
  entries: readonly LedgerEntry[],
  { heard }: { heard: boolean },
): Promise<void> {
  for (let page = 0; page * PAGE < entries.length; page++) {
    await ladderActivities.keepLedger({
      run,
      heard,
      ledger: { writer, sequence: page + 1 },
      entries: entries.slice(page * PAGE, (page + 1) * PAGE),
    });
  }
}
