import { RandomStream } from '../../../core/random.ts';
import type { Split } from '../../../core/refs.ts';
import type { InPieces } from '../../../engine/in-pieces.ts';
import { splitOfProblem } from '../../contract/generated-tasks.ts';
import { normalizeSquad } from '../../verifiers/squad.ts';
import type { Bm25, Passage } from './bm25.ts';
import { LEVELS, passagesOf, type Level } from './levels.ts';
import { RELATIONS, type Relation, type Synset } from './wordnet.ts';

/** A fact that stands in a passage: what the passage is about is so related to what it mentions by this name. */
interface Hop {
  /** What to search for. */
  from: string;
  relation: Relation;
  to: string;
}

export interface SearchQuestion {
  hops: readonly Hop[];
  /** Names of what the last hop leads to: the one in the text first, then others of the same split. */
  answers: readonly string[];
}

/** By split and level, in the order in which they are dealt. */
export type Questions = Readonly<Record<Split, ReadonlyMap<number, readonly SearchQuestion[]>>>;

/** Of one level and split, with the same answer: some nouns are what thousands of others are a kind of. */
const MOST_OF_ONE_ANSWER = 20;
/** Of small levels, in characters. */
const SHORT = { gloss: 90, title: 60 };
/** Nouns that are looked at between two turns of the event loop. */
const PIECE = 100;
const SMALL_NAME = /^[A-Za-z]{3,12}$/u;

/**
 * The split of a question, by its answer as it is compared: no answer of one split is an answer of another, whatever the
 * level and however many names it has.
 */
export function splitOf(answer: string): Split {
  return splitOfProblem('search-qa', normalizeSquad(answer));
}

/**
 * Chains of facts, each said by the text of a passage that is found by the name that the fact before (or the question)
 * gives: so a question can be answered from what is searched, and by nothing else of what the policy is given.
 */
export function* makeQuestions(
  nouns: ReadonlyMap<string, Synset>,
  passages: ReadonlyMap<string, Passage>,
  index: Bm25,
): InPieces<Questions> {
  const meanings = new Map<string, number>();
  for (const { names } of nouns.values()) {
    for (const name of new Set(names.map(lower))) meanings.set(name, (meanings.get(name) ?? 0) + 1);
  }
  const most = Math.max(...LEVELS.map(passagesOf));
  const found = new Map<string, readonly Passage[]>();
  const isFound = (name: string, { id }: Synset, among: number): boolean => {
    const best = found.get(name) ?? index.search(name, most);
    found.set(name, best);
    return best.slice(0, among).includes(passages.get(id)!);
  };

  const facts = new Map<Synset, readonly Fact[]>();
  const factsAt = (noun: Synset): readonly Fact[] => {
    const known = facts.get(noun) ?? factsOf(nouns, noun);
    facts.set(noun, known);
    return known;
  };

  /** A way through as many facts as the level has, whether or not a search finds them. */
  const chain = (
    level: Level,
    start: Synset,
  ): { sources: Synset[]; hops: Hop[]; last: Synset } | undefined => {
    const [sources, hops]: [Synset[], Hop[]] = [[], []];
    let [at, name] = [start, start.names[0]!];
    while (hops.length < level.hops) {
      sources.push(at);
      if (level.small && !isSmall(at, name)) return undefined;
      const fact = factsAt(at).find(
        ({ target, mention }) =>
          !sources.includes(target) &&
          (!level.small || SMALL_NAME.test(mention)) &&
          (level.stands === 'anywhere' || begins(at.gloss, mention)),
      );
      if (fact === undefined) return undefined;
      hops.push({ from: name, relation: fact.relation, to: fact.mention });
      [at, name] = [fact.target, fact.mention];
    }
    return { sources, hops, last: at };
  };

  const questions: Record<Split, Map<number, SearchQuestion[]>> = {
    train: new Map(),
    heldout: new Map(),
    test: new Map(),
  };
  const starts = new RandomStream('search-qa', 'order').shuffle(
    [...nouns.values()].filter(({ names }) => meanings.get(lower(names[0]!)) === 1),
  );
  for (const level of LEVELS) {
    for (const all of Object.values(questions)) all.set(level.level, []);
    const asked = new Map<string, number>();
    for (const [i, start] of starts.entries()) {
      if (i % PIECE === 0) yield;
      const made = chain(level, start);
      if (made === undefined) continue;
      const answer = made.hops.at(-1)!.to;
      const times = asked.get(normalizeSquad(answer)) ?? 0;
      if (times === MOST_OF_ONE_ANSWER) continue;
      if (!made.hops.every(({ from }, hop) => isFound(from, made.sources[hop]!, passagesOf(level)))) continue;
      asked.set(normalizeSquad(answer), times + 1);
      const split = splitOf(answer);
      const others = made.last.names.filter((name) => name !== answer && splitOf(name) === split);
      questions[split].get(level.level)!.push({ hops: made.hops, answers: [answer, ...others] });
    }
  }
  return questions;
}

const lower = (text: string): string => text.toLowerCase();

const isSmall = ({ names, gloss }: Synset, name: string): boolean =>
  SMALL_NAME.test(name) && gloss.length <= SHORT.gloss && names.join(', ').length <= SHORT.title;

const begins = (gloss: string, mention: string): boolean =>
  spaced(gloss)
    .replace(/^ (?:an?|the) /u, ' ')
    .startsWith(spaced(mention));

interface Fact {
  relation: Relation;
  target: Synset;
  mention: string;
}

/**
 * The relations in which a noun stands to one other alone, whose name its text has and it does not share; what it is part
 * of first, which says more than what it is.
 */
function factsOf(nouns: ReadonlyMap<string, Synset>, { names, gloss, relations }: Synset): Fact[] {
  const text = spaced(gloss);
  const own = new Set(names.map(normalizeSquad));
  return RELATIONS.toReversed().flatMap((relation): Fact[] => {
    const [id, ...more] = relations[relation];
    const target = id === undefined || more.length > 0 ? undefined : nouns.get(id);
    const mention = target?.names.find(
      (name) => text.includes(spaced(name)) && !own.has(normalizeSquad(name)),
    );
    return target === undefined || mention === undefined ? [] : [{ relation, target, mention }];
  });
}

/** For finding whole words. */
const spaced = (text: string): string =>
  ` ${text
    .toLowerCase()
    .replace(/[^\p{L}\p{N}'-]+/gu, ' ')
    .trim()} `;
