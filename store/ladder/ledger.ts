import { addEntries } from '../../core/ladder/ledger.ts';
import type { LedgerEntry, LedgerTotals } from '../../core/ladder/ledger.ts';
import type { LedgerPlace } from '../../core/ladder/requests.ts';
import { ledgerPages } from './ladder-codecs.ts';
import { ledgerKey, ledgerPrefix } from '../keys.ts';
import type { CallOptions, ObjectStore } from '../objects/object-store.ts';
import { unlessDamaged } from '../objects/unless-damaged.ts';

/**
 * Writes a page of the ledger and adds it up; an attempt before this one may have written it already, and then that
 * one counts.
 */
export async function appendLedger(
  store: ObjectStore,
  run: string,
  { writer, sequence }: LedgerPlace,
  entries: readonly LedgerEntry[],
  options: CallOptions = {},
): Promise<Record<string, LedgerTotals>> {
  if (entries.length === 0) return {};
  const page = await store.putIfAbsent(ledgerKey(run, writer, sequence), ledgerPages, [...entries], options);
  return addEntries({}, page.value);
}

/**
 * Every entry of a run's ledger, in the order in which each writer wrote them. `damaged`: pages that cannot be read are left
 * out, and why is added to it; without it they throw.
 */
export async function readLedger(
  store: ObjectStore,
  run: string,
  { damaged, ...options }: CallOptions & { damaged?: string[] } = {},
): Promise<LedgerEntry[]> {
  const pages: LedgerEntry[][] = [];
  for (const { key } of await store.list(ledgerPrefix(run), options)) {
    pages.push((await unlessDamaged(damaged, () => store.find(key, ledgerPages, options))) ?? []);
  }
  return pages.flat();
}
