import { runPrefix } from '../../store/keys.ts';
import type { ObjectStore } from '../../store/objects/object-store.ts';

/** What lies below a prefix. */
interface Usage {
  prefix: string;
  objects: number;
  bytes: number;
}

export interface UsageReport {
  /** When it was counted, epoch milliseconds. */
  asOf: number;
  all: Usage;
  /** By the next part of the key, and by run in the whole bucket; the largest first. */
  parts: Usage[];
  /** Parts that are in `all` and not listed: the smallest. */
  left: number;
}

/** Parts that are told apart: a bucket may be anybody's. */
const MOST_PARTS = 200;
const RUNS = 'runs/';

/** Counts what lies below a prefix that ends with `/`, or is empty for all of the bucket; it takes a request a thousand objects. */
export async function usageBelow(store: ObjectStore, prefix: string): Promise<UsageReport> {
  const parts = await store.fold(prefix, () => new Map<string, Usage>(), count);
  const sorted = [...parts.values()].toSorted((a, b) => b.bytes - a.bytes);
  const all: Usage = { prefix, objects: 0, bytes: 0 };
  for (const { objects, bytes } of sorted) {
    all.objects += objects;
    all.bytes += bytes;
  }
  return {
    asOf: Date.now(),
    all,
    parts: sorted.slice(0, MOST_PARTS),
    left: Math.max(0, sorted.length - MOST_PARTS),
  };

  function count(counted: Map<string, Usage>, key: string, bytes: number): void {
    // Of the bucket each run is a part.
    const above = prefix === '' && key.startsWith(RUNS) ? RUNS : prefix;
    const end = key.indexOf('/', above.length);
    const part = end < 0 ? key : key.slice(0, end + 1);
    const usage = counted.get(part) ?? { prefix: part, objects: 0, bytes: 0 };
    usage.objects++;
    usage.bytes += bytes;
    counted.set(part, usage);
  }
}

/** Counting a bucket of millions of objects takes minutes: it is done once for all who ask within this time. */
const FRESH_MS = 5 * 60_000;
const MOST_USAGES = 64;

/** What was counted lately, for many who ask. */
export class UsageCache {
  private readonly reports = new Map<string, { at: number; report: Promise<UsageReport> }>();
  private readonly store: ObjectStore;

  constructor(store: ObjectStore) {
    this.store = store;
  }

  /** Of a run, or with null of the whole bucket. Throws what the store throws. */
  of(run: string | null): Promise<UsageReport> {
    const prefix = run === null ? '' : runPrefix(run);
    const known = this.reports.get(prefix);
    if (known && Date.now() - known.at < FRESH_MS) return known.report;
    const entry = { at: Date.now(), report: usageBelow(this.store, prefix) };
    this.reports.delete(prefix);
    this.reports.set(prefix, entry);
    for (const oldest of this.reports.keys()) {
      if (this.reports.size <= MOST_USAGES) break;
      this.reports.delete(oldest);
    }
    entry.report.catch(() => {
      // Who asked is told why; the next one counts anew.
      if (this.reports.get(prefix) === entry) this.reports.delete(prefix);
    });
    return entry.report;
  }
}
