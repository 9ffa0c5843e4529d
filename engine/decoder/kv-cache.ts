import type { KvRows } from './kv-block.ts';

/** What a sequence that is not being decoded has left behind. */
export interface CachedSequence {
  rows: KvRows;
  /** The tokens of `rows` that were fed as one piece, and those that were fed after them, in pieces of these sizes. */
  prefix: readonly number[];
  tokens: readonly number[];
  pieces: readonly number[];
  /** Logits [V] of the last token, kept for prefixes only. */
  logits?: Float32Array;
}

/** Keeps caches up to a budget of bytes and forgets those that were used longest ago. */
export class KvCache {
  private readonly entries = new Map<string, CachedSequence>();
  private readonly budget: number;
  private bytes = 0;

  constructor(budget: number) {
    this.budget = budget;
  }

  get(key: string): CachedSequence | undefined {
    const entry = this.entries.get(key);
    if (entry !== undefined) {
      // A Map iterates in order of insertion: putting it back makes it the most recent.
      this.entries.delete(key);
      this.entries.set(key, entry);
    }
    return entry;
  }

  set(key: string, entry: CachedSequence): void {
    this.delete(key);
    this.entries.set(key, entry);
    this.bytes += size(entry);
    for (const oldest of this.entries.keys()) {
      if (this.bytes <= this.budget) break;
      this.delete(oldest);
    }
  }

  delete(key: string): void {
    const entry = this.entries.get(key);
    if (entry === undefined) return;
    this.entries.delete(key);
    this.bytes -= size(entry);
  }

  clear(): void {
    this.entries.clear();
    this.bytes = 0;
  }
}

function size({ rows, logits }: CachedSequence): number {
  return rows.data.byteLength + (logits?.byteLength ?? 0);
}
