import { RandomStream } from '../../../../core/random.ts';
import type { Split } from '../../../../core/refs.ts';
import type { InPieces } from '../../../../engine/in-pieces.ts';
import { normalizeSquad } from '../../../verifiers/squad.ts';
import type { Bm25, Passage } from '../bm25.ts';
import { splitOf } from '../questions.ts';
import type { Corpus, Entry, Fact } from './entry.ts';

/** A level has questions of as many hops as its number says. (Of three there are a dozen in each corpus: too few.) */
export const LEVELS = [1, 2] as const;
/** Passages that a search shows. */
export const SHOWN = 3;
/** Of one level, with the same answer. */
const MOST_OF_ONE_ANSWER = 40;
/** Longest passage, characters. */
const LONGEST = 600;
/** Questions that are looked at between two turns of the event loop. */
const PIECE = 50;

export interface ChainQuestion {
  prompt: string;
  /** What to search for, hop by hop. */
  queries: readonly string[];
  /** As the text has it first, then other names of the same thing that are of the same split. */
  answers: readonly string[];
}

export type ChainQuestions = Record<Split, ChainQuestion[][]>;

export const passageOf = ({ names, text }: Entry): Passage => ({
  title: names.join(', '),
  text: text.length <= LONGEST ? text : `${text.slice(0, LONGEST)}…`,
});

const UNKNOWNS = ['A', 'B'];

/**
 * Questions along facts that stand in the passages: each passage is among those that a search for the name shows which the
 * question, or the passage before, gives, and each has one right answer. By level in each split, in the order in which they
 * are dealt; no answer of one split is an answer of another.
 */
export function* makeChains(
  { entries, said }: Corpus,
  passages: readonly Passage[],
  index: Bm25,
): InPieces<ChainQuestions> {
  const searched = new Map<string, readonly Passage[]>();
  const isFound = (name: string, place: number): boolean => {
    const best = searched.get(name) ?? index.search(name, SHOWN);
    searched.set(name, best);
    return best.includes(passages[place]!);
  };
  const usable = entries.map(({ names, facts }, place): readonly Fact[] => {
    const own = new Set(names.map(normalizeSquad));
    return facts.filter(
      ({ mention, evidence }) =>
        passages[place]!.text.includes(evidence) && !own.has(normalizeSquad(mention)),
    );
  });
  /** All ways of so many facts from an entry by one of its names. */
  const chainsFrom = (
    factsAt: (place: number, name: string) => readonly Fact[],
    place: number,
    name: string,
    hops: number,
    been: readonly number[] = [],
  ): Hop[][] =>
    factsAt(place, name).flatMap((fact) => {
      const hop = { from: name, fact };
      if (fact.to !== undefined && been.includes(fact.to)) return [];
      if (hops === 1) return [[hop]];
      if (fact.to === undefined) return [];
      const on = chainsFrom(factsAt, fact.to, fact.mention, hops - 1, [...been, place]);
      return on.map((rest) => [hop, ...rest]);
    });
  const all = (place: number): readonly Fact[] => entries[place]!.facts;
  const found = (place: number, name: string): readonly Fact[] =>
    usable[place]!.length > 0 && isFound(name, place) ? usable[place]! : [];

  const questions: ChainQuestions = {
    train: LEVELS.map(() => []),
    heldout: LEVELS.map(() => []),
    test: LEVELS.map(() => []),
  };
  const starts = new RandomStream('search-qa', 'order').shuffle([...entries.keys()]);
  for (const [level, hops] of LEVELS.entries()) {
    // A name may stand for several entries, found or not: a question about it would be in several splits, with other answers.
    const answersTo = new Map<string, Set<string>>();
    for (const [place, { names }] of entries.entries()) {
      if (place % PIECE === 0) yield;
      for (const chain of names.flatMap((name) => chainsFrom(all, place, name, hops))) {
        const prompt = promptOf(chain, said);
        answersTo.set(prompt, (answersTo.get(prompt) ?? new Set()).add(answerOf(chain)));
      }
    }
    const asked = new Map<string, number>();
    for (const [i, start] of starts.entries()) {
      if (i % PIECE === 0) yield;
      for (const chain of chainsFrom(found, start, entries[start]!.names[0]!, hops)) {
        const prompt = promptOf(chain, said);
        const answer = answerOf(chain);
        const times = asked.get(answer) ?? 0;
        if (answersTo.get(prompt)!.size > 1 || answer === '' || times === MOST_OF_ONE_ANSWER) continue;
        asked.set(answer, times + 1);
        const { mention, to } = chain.at(-1)!.fact;
        const split = splitOf(mention);
        const others = (to === undefined ? [] : entries[to]!.names).filter(
          (name) => name !== mention && splitOf(name) === split,
        );
        questions[split][level]!.push({
          prompt,
          queries: chain.map(({ from }) => from),
          answers: [mention, ...others],
        });
      }
    }
  }
  return questions;
}

const answerOf = (chain: readonly Hop[]): string => normalizeSquad(chain.at(-1)!.fact.mention);

interface Hop {
  from: string;
  fact: Fact;
}

/** `J3 is a dialect of A. A is a variant of B. What is B?` */
function promptOf(chain: readonly Hop[], said: Corpus['said']): string {
  const facts = chain.map(
    ({ from, fact }, i) => `${i === 0 ? from : UNKNOWNS[i - 1]} ${said[fact.relation]} ${UNKNOWNS[i]}.`,
  );
  return `${facts.join(' ')} What is ${UNKNOWNS[chain.length - 1]}?`;
}
