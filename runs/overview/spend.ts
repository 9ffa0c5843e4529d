import { isLadderWriter } from '../../core/ladder/requests.ts';
import { addEntries } from '../../core/ladder/ledger.ts';
import type { LedgerTotals } from '../../core/ladder/ledger.ts';
import { inParallel } from '../../store/in-parallel.ts';
import type { Spent } from '../../core/tier-contract.ts';
import { ledgerPrefix, writerOf } from '../../store/keys.ts';
import { ledgerPages } from '../../store/ladder/ladder-codecs.ts';
import type { CallOptions, ObjectStore } from '../../store/objects/object-store.ts';

/** A look at a run reads no more pages than these. */
const MOST_PAGES = 200;

/** What verdicts took and cost, and how long people were asked, which is a figure of its own. */
export interface SpentOnVerdicts extends Spent {
  /** Reviews that people have answered were open for so long in all. */
  openSeconds: number;
}

export const spentOf = (totals: Readonly<Record<string, LedgerTotals>>): SpentOnVerdicts => {
  const sum = (of: 'seconds' | 'usd' | 'openSeconds'): number =>
    // A ladder of an older version has no seconds of reviews.
    Object.values(totals).reduce((all, one) => all + (one[of] ?? 0), 0);
  return { seconds: sum('seconds'), usd: sum('usd'), openSeconds: sum('openSeconds') };
};

/**
 * What the ledger of a run adds up to, or with `beside` what others than its ladder have written there: evaluations and
 * sweeps. null where that takes more than a look. Throws what the store throws.
 */
export async function spentInLedger(
  store: ObjectStore,
  run: string,
  { beside = false, ...options }: CallOptions & { beside?: boolean } = {},
): Promise<SpentOnVerdicts | null> {
  const all = await store.list(ledgerPrefix(run), options);
  const pages = beside ? all.filter(({ key }) => !isLadderWriter(writerOf(key))) : all;
  if (pages.length > MOST_PAGES) return null;
  const entries = await inParallel(pages, ({ key }) => store.find(key, ledgerPages, options));
  return spentOf(
    addEntries(
      {},
      entries.flatMap((page) => page ?? []),
    ),
  );
}
