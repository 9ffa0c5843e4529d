import { addEntries } from '../../core/ladder/ledger.ts';
import type { LedgerTotals } from '../../core/ladder/ledger.ts';
import { inParallel } from '../../store/in-parallel.ts';
import { ledgerPrefix } from '../../store/keys.ts';
import { ledgerPages } from '../../store/ladder/ladder-codecs.ts';
import type { ObjectStore } from '../../store/objects/object-store.ts';

interface Sum {
  /** Pages that are in it. */
  read: Set<string>;
  totals: Record<string, LedgerTotals>;
}

/** What ledgers add up to. Their pages never change: each is read once, and only its sum is kept. */
export class LedgerSums {
  private readonly sums = new Map<string, Sum>();
  private readonly store: ObjectStore;

  constructor(store: ObjectStore) {
    this.store = store;
  }

  /** By verifier. Throws what the store throws. */
  async of(run: string): Promise<Record<string, LedgerTotals>> {
    const sum = this.sums.get(run) ?? { read: new Set(), totals: {} };
    const pages = await this.store.list(ledgerPrefix(run));
    const missing = pages.filter(({ key }) => !sum.read.has(key));
    await inParallel(missing, async ({ key }) => {
      const entries = (await this.store.find(key, ledgerPages)) ?? [];
      // Who asks at the same time may have read it meanwhile.
      if (sum.read.has(key)) return;
      sum.read.add(key);
      sum.totals = addEntries(sum.totals, entries);
    });
    this.sums.set(run, sum);
    return sum.totals;
  }

  /** Lets go of all others. */
  keepOnly(runs: readonly string[]): void {
    for (const run of this.sums.keys()) if (!runs.includes(run)) this.sums.delete(run);
  }
}
