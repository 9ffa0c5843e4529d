import { isTransientAbstention } from '../../core/ladder/abstentions.ts';
import { addEntries, mergeTotals } from '../../core/ladder/ledger.ts';
import type { LedgerEntry, LedgerTotals } from '../../core/ladder/ledger.ts';
import { isLadderWriter } from '../../core/ladder/requests.ts';
import { GradusError } from '../../core/errors.ts';
import { ledgerPrefix, writerOf } from '../../store/keys.ts';
import { ledgerPages } from '../../store/ladder/ladder-codecs.ts';
import { inParallel } from '../../store/in-parallel.ts';
import type { ObjectStore } from '../../store/objects/object-store.ts';
import { PairBook } from './pairs.ts';
import type { Pair } from './pairs.ts';

type Entry<Kind extends LedgerEntry['kind']> = Extract<LedgerEntry, { kind: Kind }>;

/** Where an entry stands. What one writer wrote is in order; between writers the ledger knows none. */
export interface PlacedEntry {
  writer: string;
  sequence: number;
  entry: LedgerEntry;
}

/** What a tier did in a run. */
export interface TierBook {
  totals: LedgerTotals;
  /** Different subjects that were to be asked about, and of those that have an answer. */
  asked: number;
  answered: number;
}

interface Came {
  verdicts: number;
  /** Those of them that were computed, or tried in vain, for this run. */
  charged: number;
}

export interface LedgerSummary {
  /** By verifier. */
  rungs: Record<string, TierBook>;
  /** By stage or evaluation, then by verifier. */
  stages: Record<string, Record<string, LedgerTotals>>;
  /** Verdicts that came, in the same order: those that stand for lost attempts, too, which a budget counts. */
  came: Record<string, Record<string, Came>>;
  /** Episodes of the run's ladder: all that its lowest tier judged, and those of them that were to go on, room or not. */
  episodes: { judged: number; climbed: number };
  /** Of the run's ladder, the newest last; null where it has written nothing. */
  lastStage: string | null;
  pairs: Pair[];
  /** What came last, from whomever. */
  newest: Entry<'verdict'>[];
  /** The newest of them, and how many there are. */
  late: { newest: Entry<'verdict'>[]; count: number };
  /** Episodes that were learnt from again, the newest offers of them, and how many offers there are. */
  offered: { newest: Entry<'offered'>[]; count: number; episodes: number };
  /** Pages that cannot be read, and why. */
  unreadable: { key: string; message: string }[];
  entries: number;
}

const MOST_NEWEST = 50;
/** Pages that are held at once while they are read. */
const PAGES_AT_ONCE = 32;

interface Page {
  key: string;
  writer: string;
  sequence: number;
  /** Of what its entries name, sorted: whether it has something is known without reading it. */
  names: Uint32Array;
}

/**
 * A run's ledger added up. Its pages never change, so each is read once, and of what it says sums are kept, with a few
 * bytes an entry to find the page again: a hundred thousand entries are some megabytes.
 */
export class LedgerBook {
  private readonly store: ObjectStore;
  private readonly run: string;
  private readonly pages = new Map<string, Page>();
  private readonly unreadable = new Map<string, string>();
  private readonly stages: LedgerSummary['stages'] = {};
  private readonly came: LedgerSummary['came'] = {};
  private readonly judged = new Set<number>();
  private readonly climbed = new Set<number>();
  private readonly asked = new Map<string, Set<number>>();
  private readonly answered = new Map<string, Set<number>>();
  /** Of verdicts that the run's ladder knows, and that no sweep asks for again. */
  private readonly heard = new Map<string, Set<number>>();
  private readonly pairs = new PairBook();
  private readonly newest: LedgerSummary['newest'] = [];
  private readonly late: LedgerSummary['late'] = { newest: [], count: 0 };
  private readonly offered: LedgerSummary['offered'] = { newest: [], count: 0, episodes: 0 };
  private lastStage: string | null = null;
  private entries = 0;
  private reading: Promise<void> | undefined;

  constructor(store: ObjectStore, run: string) {
    this.store = store;
    this.run = run;
  }

  /** Reads what was written since. Throws what the store throws when it is away. */
  refresh(): Promise<void> {
    this.reading ??= this.read().finally(() => (this.reading = undefined));
    return this.reading;
  }

  summary(): LedgerSummary {
    const totals = Object.values(this.stages).reduce(mergeTotals, {});
    const tiers = Object.entries(totals).map(([verifier, sum]): [string, TierBook] => [
      verifier,
      {
        totals: sum,
        asked: this.asked.get(verifier)?.size ?? 0,
        answered: this.answered.get(verifier)?.size ?? 0,
      },
    ]);
    return {
      rungs: Object.fromEntries(tiers),
      stages: this.stages,
      came: this.came,
      episodes: { judged: this.judged.size, climbed: this.climbed.size },
      lastStage: this.lastStage,
      pairs: this.pairs.all(),
      newest: this.newest,
      late: this.late,
      offered: this.offered,
      unreadable: [...this.unreadable].map(([key, message]) => ({ key, message })),
      entries: this.entries,
    };
  }

  /** Whether the run's ladder, or a sweep of it, has been told what a verifier says of a subject. */
  hasHeard(verifier: string, digest: string): boolean {
    return this.heard.get(verifier)?.has(numberOf(digest)) === true;
  }

  /** Entries of pages that name one of these, in order, the ladder's first; `most` pages of them, the newest. */
  async find(
    names: readonly string[],
    wanted: (entry: LedgerEntry) => boolean,
    { most = 200 }: { most?: number } = {},
  ): Promise<{ entries: PlacedEntry[]; left: number }> {
    const numbers = names.map(nameNumber);
    const having = [...this.pages.values()]
      .filter((page) => numbers.some((number) => includes(page.names, number)))
      .toSorted(inOrder);
    const read = await inParallel(
      having.slice(-most),
      async ({ key, writer, sequence }) =>
        ((await this.store.find(key, ledgerPages)) ?? [])
          .filter(wanted)
          .map((entry): PlacedEntry => ({ writer, sequence, entry })),
      8,
    );
    return { entries: read.flat(), left: Math.max(0, having.length - most) };
  }

  private async read(): Promise<void> {
    const listed = await this.store.list(ledgerPrefix(this.run));
    const fresh = listed
      .filter(({ key }) => !this.pages.has(key) && !this.unreadable.has(key))
      .map(({ key }) => ({ key, ...placeOf(key) }))
      .toSorted(inOrder);
    for (let at = 0; at < fresh.length; at += PAGES_AT_ONCE) {
      const some = fresh.slice(at, at + PAGES_AT_ONCE);
      const read = await inParallel(some, async ({ key }) => {
        try {
          return await this.store.find(key, ledgerPages);
        } catch (error) {
          // One that is damaged hides no other.
          if (!(error instanceof GradusError) || error.retryable) throw error;
          this.unreadable.set(key, error.message);
          return null;
        }
      });
      some.forEach((page, i) => {
        const entries = read[i];
        if (!entries) return;
        this.add(page.writer, entries);
        this.pages.set(page.key, { ...page, names: namesOf(entries) });
      });
    }
  }

  private add(writer: string, entries: readonly LedgerEntry[]): void {
    const hears = isLadderWriter(writer) || writer.startsWith('sweep-');
    for (const entry of entries) {
      this.entries++;
      this.stages[entry.stage] = addEntries(this.stages[entry.stage] ?? {}, [entry]);
      if (isLadderWriter(writer)) this.lastStage = entry.stage;
      if (entry.kind === 'decision') {
        if (isLadderWriter(writer)) {
          const episode = wideNumber(entry.candidate);
          this.judged.add(episode);
          if (entry.decision === 'escalate' || entry.decision === 'defer') this.climbed.add(episode);
        }
        if (entry.decision === 'escalate') note(this.asked, entry);
        this.pairs.add(entry);
      } else if (entry.kind === 'verdict') {
        note(this.asked, entry);
        note(this.answered, entry);
        const came = ((this.came[entry.stage] ??= {})[entry.verifier] ??= { verdicts: 0, charged: 0 });
        came.verdicts++;
        if (entry.spent !== null) came.charged++;
        keepNewest(this.newest, entry);
        if (hears && (entry.type === undefined || !isTransientAbstention(entry.type)))
          note(this.heard, entry);
        if (entry.late) {
          this.late.count++;
          keepNewest(this.late.newest, entry);
        }
      } else if (entry.kind === 'offered') {
        this.offered.count++;
        this.offered.episodes += entry.episodes;
        keepNewest(this.offered.newest, entry);
      }
    }
  }
}

/** Books of the runs that were looked at last. */
export class Ledgers {
  private readonly books = new Map<string, { book: LedgerBook; at: number }>();
  private readonly store: ObjectStore;

  constructor(store: ObjectStore) {
    this.store = store;
  }

  /** The book of a run with all that was written until a second ago. */
  async of(run: string): Promise<LedgerBook> {
    const known = this.books.get(run) ?? { book: new LedgerBook(this.store, run), at: -Infinity };
    this.books.delete(run);
    this.books.set(run, known);
    for (const oldest of this.books.keys()) {
      if (this.books.size <= MOST_BOOKS) break;
      this.books.delete(oldest);
    }
    if (performance.now() - known.at > FRESH_MS) {
      await known.book.refresh();
      known.at = performance.now();
    }
    return known.book;
  }
}

const MOST_BOOKS = 4;
const FRESH_MS = 1000;

function keepNewest<T>(list: T[], one: T): void {
  list.push(one);
  if (list.length > MOST_NEWEST) list.shift();
}

function note(
  sets: Map<string, Set<number>>,
  { verifier, digest }: { verifier: string; digest: string },
): void {
  const number = numberOf(digest);
  if (Number.isNaN(number)) return;
  const set = sets.get(verifier) ?? new Set();
  sets.set(verifier, set.add(number));
}

/** The first half a hundred bits of a digest: nobody meets another one with the same, and a set of them is small. */
const numberOf = (digest: string): number => Number.parseInt(digest.slice(0, 13), 16);

function placeOf(key: string): { writer: string; sequence: number } {
  return { writer: writerOf(key), sequence: Number.parseInt(key.split('/').at(-1)!, 10) };
}

type Placed = Pick<Page, 'writer' | 'sequence'>;
/** What the ladders of the run wrote comes first, that of earlier ones before that of later ones. */
export const inOrder = (a: Placed, b: Placed): number => {
  if (a.writer === b.writer) return a.sequence - b.sequence;
  const [first, second] = [isLadderWriter(a.writer), isLadderWriter(b.writer)];
  if (first !== second) return first ? -1 : 1;
  return a.writer > b.writer ? 1 : -1;
};

function namesOf(entries: readonly LedgerEntry[]): Uint32Array {
  const numbers = new Set<number>();
  for (const entry of entries) {
    if ('digest' in entry) numbers.add(nameNumber(entry.digest));
    if (entry.kind === 'decision') numbers.add(nameNumber(entry.candidate));
    if (entry.kind === 'offered') numbers.add(nameNumber(offeredName(entry.stage, entry.fromStep)));
  }
  return Uint32Array.from(numbers).toSorted();
}

/** By which an offer of an earlier step is found. */
export const offeredName = (stage: string, step: number): string => `offered ${stage} ${step}`;

/** Two of them in one number: of a million names no two are expected to have the same. */
const wideNumber = (name: string): number => nameNumber(name) * 2 ** 21 + (nameNumber(`${name} `) >>> 11);

/** FNV-1a. Another name with the same number costs a page that is read in vain. */
function nameNumber(name: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < name.length; i++) hash = Math.imul(hash ^ name.charCodeAt(i), 0x01000193);
  return hash >>> 0;
}

function includes(sorted: Uint32Array, number: number): boolean {
  let [low, high] = [0, sorted.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (sorted[middle]! < number) low = middle + 1;
    else high = middle;
  }
  return sorted[low] === number;
}
