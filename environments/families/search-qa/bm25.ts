import type { InPieces } from '../../../engine/in-pieces.ts';

/** A text that can be found. */
export interface Passage {
  /** Names of what it is about, with commas between; a word of them counts `TITLE_WEIGHT` times. */
  title: string;
  text: string;
}

const TITLE_WEIGHT = 4;
/** How soon a word that comes again counts no more, and how much a long text is held against it (Anserini's defaults). */
const K1 = 0.9;
const B = 0.4;
/** More than any sum of gains. */
const NAME_GAIN = 1e6;
/** Passages, or words, between two turns of the event loop. */
const PIECE = 500;

/** Words of a text in lower case; everything but letters and digits separates them. */
export const wordsOf = (text: string): string[] => text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];

const namesOf = (title: string): string[] => title.split(', ').map((name) => wordsOf(name).join(' '));

function listOf(lists: Map<string, number[]>, key: string): number[] {
  let list = lists.get(key);
  if (list === undefined) lists.set(key, (list = []));
  return list;
}

/** A stretch of the postings: one word's. */
interface Stretch {
  from: number;
  to: number;
}

/** The inverted index in flat arrays: in which passage a word is, and what it adds there to the score. */
interface Index {
  passages: readonly Passage[];
  stretches: ReadonlyMap<string, Stretch>;
  passageOf: Int32Array;
  gain: Float64Array;
  /** Passages by what one of their names comes down to. */
  named: ReadonlyMap<string, readonly number[]>;
}

/** Passages by Okapi BM25 (Robertson et al. 1994); one whose title has the query as a name comes before all others. */
export class Bm25 {
  private readonly index: Index;
  /** Of the query at hand, by passage; zero between two queries. */
  private readonly scores: Float64Array;

  private constructor(index: Index) {
    this.index = index;
    this.scores = new Float64Array(index.passages.length);
  }

  static *of(passages: readonly Passage[]): InPieces<Bm25> {
    const postings = new Map<string, number[]>();
    const named = new Map<string, number[]>();
    const lengths: number[] = [];
    for (const [passage, { title, text }] of passages.entries()) {
      const counts = new Map<string, number>();
      const count = (words: readonly string[], weight: number): number => {
        for (const word of words) counts.set(word, (counts.get(word) ?? 0) + weight);
        return weight * words.length;
      };
      lengths.push(count(wordsOf(title), TITLE_WEIGHT) + count(wordsOf(text), 1));
      for (const [word, times] of counts) listOf(postings, word).push(passage, times);
      for (const name of new Set(namesOf(title))) listOf(named, name).push(passage);
      if (passage % PIECE === 0) yield;
    }
    const mean = lengths.reduce((sum, length) => sum + length, 0) / lengths.length;
    const size = [...postings.values()].reduce((sum, list) => sum + list.length / 2, 0);
    const [passageOf, gain] = [new Int32Array(size), new Float64Array(size)];
    const stretches = new Map<string, Stretch>();
    let at = 0;
    for (const [word, list] of postings) {
      const from = at;
      const having = list.length / 2;
      const rarity = Math.log(1 + (passages.length - having + 0.5) / (having + 0.5));
      for (let i = 0; i < list.length; i += 2, at++) {
        const [passage, times] = [list[i]!, list[i + 1]!];
        const saturation = K1 * (1 - B + (B * lengths[passage]!) / mean);
        passageOf[at] = passage;
        gain[at] = (rarity * times * (K1 + 1)) / (times + saturation);
      }
      stretches.set(word, { from, to: at });
      if (stretches.size % PIECE === 0) yield;
    }
    return new Bm25({ passages, stretches, passageOf, gain, named });
  }

  /** The best `most` passages that have a word of the query, best first; of equal ones the earlier. */
  search(query: string, most: number): Passage[] {
    const { scores } = this;
    const { passages, stretches, passageOf, gain, named } = this.index;
    const touched: number[] = [];
    const add = (passage: number, more: number): void => {
      if (scores[passage] === 0) touched.push(passage);
      scores[passage]! += more;
    };
    const words = wordsOf(query);
    for (const word of new Set(words)) {
      const { from, to } = stretches.get(word) ?? { from: 0, to: 0 };
      for (let i = from; i < to; i++) add(passageOf[i]!, gain[i]!);
    }
    for (const passage of named.get(words.join(' ')) ?? []) add(passage, NAME_GAIN);
    const best: number[] = [];
    const isBetter = (a: number, b: number): boolean =>
      scores[a]! > scores[b]! || (scores[a] === scores[b] && a < b);
    for (const passage of touched) {
      let place = best.length;
      while (place > 0 && isBetter(passage, best[place - 1]!)) place--;
      if (place >= most) continue;
      best.splice(place, 0, passage);
      if (best.length > most) best.pop();
    }
    for (const passage of touched) scores[passage] = 0;
    return best.map((passage) => passages[passage]!);
  }
}
