import type { LedgerEntry } from '../../core/ladder/ledger.ts';
import { ledgerPrefix } from './keys.ts';
import type { CallOptions, ObjectStore } from './object-store.ts';

/** Every entry of a run's ledger, in the order in which each writer wrote them. */
export async function readLedger(
  store: ObjectStore,
  run: string,
  options: CallOptions = {},
): Promise<LedgerEntry[]> {
  const entries: LedgerEntry[] = [];
  for (const { key } of await store.list(ledgerPrefix(run), options)) {
    const ref = await store.head(key, options);
    if (ref) entries.push(...((await store.getJson(ref, options)) as unknown as LedgerEntry[]));
  }
  return entries;
}
