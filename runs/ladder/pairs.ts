import type { LedgerEntry } from '../../core/ladder/ledger.ts';

type Decision = Extract<LedgerEntry, { kind: 'decision' }>;
type Basis = NonNullable<Decision['basis']>;

/** A candidate that two neighbouring tiers have judged. */
export interface Point {
  cheap: number;
  dear: number;
}

export interface Pair {
  from: string;
  to: string;
  /** The newest that differ. */
  points: Point[];
  /** How many there were in all. */
  count: number;
}

/** Candidates whose last decision is remembered: a late verdict comes within some steps. */
const MOST_CANDIDATES = 20_000;
const MOST_POINTS = 2000;

/**
 * What neighbouring tiers said of the same candidates, from what their decisions rest on: a decision that rests on a
 * tier's verdict and one after it, of the same candidate, that rests on the next tier's are a point.
 */
export class PairBook {
  private readonly last = new Map<string, Basis>();
  private readonly pairs = new Map<
    string,
    { from: string; to: string; rung: number; count: number; points: Map<string, Point> }
  >();

  add({ candidate, digest, basis }: Decision): void {
    if (!basis) return;
    const before = this.last.get(candidate);
    this.last.delete(candidate);
    this.last.set(candidate, basis);
    if (this.last.size > MOST_CANDIDATES) this.last.delete(this.last.keys().next().value!);
    if (before === undefined || basis.rung !== before.rung + 1) return;
    const name = JSON.stringify([before.verifier, basis.verifier]);
    const pair = this.pairs.get(name) ?? {
      from: before.verifier,
      to: basis.verifier,
      rung: before.rung,
      count: 0,
      points: new Map<string, Point>(),
    };
    this.pairs.set(name, pair);
    // What several episodes answered alike is one point.
    const point = `${digest} ${before.score} ${basis.score}`;
    if (pair.points.has(point)) return;
    pair.count++;
    pair.points.set(point, { cheap: before.score, dear: basis.score });
    if (pair.points.size > MOST_POINTS) pair.points.delete(pair.points.keys().next().value!);
  }

  /** The cheapest tiers first. */
  all(): Pair[] {
    return [...this.pairs.values()]
      .toSorted((a, b) => a.rung - b.rung)
      .map(({ from, to, count, points }) => ({ from, to, count, points: [...points.values()] }));
  }
}
