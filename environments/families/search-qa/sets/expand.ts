import type { RandomStream } from '../../../../core/random.ts';
import type { Level } from './levels.ts';
import type { People } from './people.ts';
import { constantsOf, execute, factsIn, nameOf, projection, RELATIONS } from './query.ts';
import type { Query, Relation, WhoIs } from './query.ts';
import { searchesFor } from './searches.ts';

/** A seed question grows by one of these. */
export type Expansion = 'layer-wise' | 'random';

export interface FormalQuestion {
  query: Query;
  /** In the order in which searches show them. */
  answers: readonly string[];
}

const MOST_ANSWERS = 3;
/** That an expert makes. */
export const MOST_SEARCHES = 7;
/** For one question; a hundred are needed now and then. */
const MOST_DRAWS = 10_000;

/**
 * A question of a level whose answer is not empty, has at most three members and none of its constants among them. Both
 * expansions begin with the same seed question, and state as many facts of it, where the random numbers are the same.
 */
export function makeQuestion(
  people: People,
  level: Level,
  expansion: Expansion,
  random: RandomStream,
): FormalQuestion {
  const grown = layeredOf(people, level, random);
  return expansion === 'layer-wise' ? grown.layered : atRandom(people, grown, random);
}

/** What `makeQuestion` gives for each expansion, of the same random numbers. */
export function makeBoth(
  people: People,
  level: Level,
  random: RandomStream,
): Record<Expansion, FormalQuestion> {
  const grown = layeredOf(people, level, random);
  return { 'layer-wise': grown.layered, random: atRandom(people, grown, random) };
}

interface Grown {
  seed: Query;
  layered: FormalQuestion;
}

const atRandom = (people: People, { seed, layered }: Grown, random: RandomStream): FormalQuestion =>
  randomOfSize(people, seed, factsIn(layered.query), random);

function layeredOf(people: People, level: Level, random: RandomStream): Grown {
  for (let draw = 0; draw < MOST_DRAWS; draw++) {
    const drawn = layerWise(people, level, random);
    // From a seed that could not be asked itself, such as one that has a constant among its answers, facts attached at random
    // may lead to no question at all: it may state as many as it is to have.
    if (!drawn || !askable(drawn.seed, people)) continue;
    const layered = askable(drawn.question, people);
    if (!layered || isRedundant(layered, people)) continue;
    return { seed: drawn.seed, layered };
  }
  throw new Error(`${MOST_DRAWS} draws gave no question of level ${level.level}`);
}

function askable(query: Query, { whoIs }: People): FormalQuestion | undefined {
  const answers = execute(query, whoIs);
  if (answers.size === 0 || answers.size > MOST_ANSWERS) return undefined;
  const constants = constantsOf(query);
  if (new Set(constants).size < constants.length || constants.some((name) => answers.has(name)))
    return undefined;
  if (statesNobody(query, whoIs) || searchesFor(query, whoIs).length > MOST_SEARCHES) return undefined;
  return { query, answers: [...answers] };
}

/** Whether an intersection in it is empty: then it states what is not so, or what leads nowhere. */
const statesNobody = (query: Query, whoIs: WhoIs): boolean =>
  (query.kind === 'and' && execute(query, whoIs).size === 0) ||
  childrenOf(query).some((child) => statesNobody(child, whoIs));

/** Whether a part of an intersection or union can be left out, and the answer is the same. */
const isRedundant = ({ query, answers }: FormalQuestion, { whoIs }: People): boolean =>
  pathsOf(query).some((path) => {
    const place = atPath(query, path);
    if (place.kind !== 'and' && place.kind !== 'or') return false;
    return place.parts.some((part) => {
      const without = execute(withAt(query, path, part), whoIs);
      return without.size === answers.length && answers.every((name) => without.has(name));
    });
  });

/**
 * Layer by layer: each constant of the layer before gives way to a question whose answer it is. So all constants stand as
 * far from the answer. Undefined where the people drawn have no such facts.
 */
function layerWise(
  people: People,
  { layers, operation }: Level,
  random: RandomStream,
): { seed: Query; question: Query } | undefined {
  const operationAt = operation ? random.int(1, layers) : 0;
  const seed = operationAt === 1 ? seedWithOperation(people, random) : seedOf(people, random);
  let question = seed;
  for (let layer = 2; layer <= layers && question !== undefined; layer++)
    question = replaceConstants(question, people, random, operationAt === layer);
  return seed && question && { seed, question };
}

function seedOf(people: People, random: RandomStream): Query {
  const relation = random.pick(RELATIONS);
  return projection(relation, nameOf(people.whose(relation, random.pick(people.names))));
}

function seedWithOperation(people: People, random: RandomStream): Query | undefined {
  if (random.uniform() < 0.5) return intersectionFor(random.pick(people.names), people, random);
  const [one, other] = random.shuffle([...RELATIONS]) as [Relation, Relation];
  const first = random.pick(people.names);
  const constant = people.whose(one, first);
  const choice = random.int(1, 3);
  // R1(a) ∪ R2(b)
  if (choice === 1) {
    const second = projection(other, nameOf(people.whose(other, random.pick(people.names))));
    return { kind: 'or', parts: [projection(one, nameOf(constant)), second] };
  }
  // R(a ∪ b), of any two or of two who are the answer to a question together.
  const second =
    choice === 2
      ? people.whose(one, random.pick(people.names))
      : people.whoIs(other, people.whose(other, constant)).find((name) => name !== constant);
  if (second === undefined) return undefined;
  return projection(one, { kind: 'or', parts: [nameOf(constant), nameOf(second)] });
}

/** R1(a) ∩ R2(b) that is this person alone. */
function intersectionFor(name: string, people: People, random: RandomStream): Query | undefined {
  const [one, other] = random.shuffle([...RELATIONS]) as [Relation, Relation];
  const parts: [Query, Query] = [
    projection(one, nameOf(people.whose(one, name))),
    projection(other, nameOf(people.whose(other, name))),
  ];
  const both: Query = { kind: 'and', parts };
  return execute(both, people.whoIs).size === 1 ? both : undefined;
}

/** R(a) that is these people and nobody else. */
function projectionFor(names: readonly string[], people: People, random: RandomStream): Query | undefined {
  const exact = RELATIONS.filter((relation) => {
    const constant = people.whose(relation, names[0]!);
    return (
      people.whoIs(relation, constant).length === names.length &&
      names.every((name) => people.whose(relation, name) === constant)
    );
  });
  if (exact.length === 0) return undefined;
  const relation = random.pick(exact);
  return projection(relation, nameOf(people.whose(relation, names[0]!)));
}

function replaceConstants(
  query: Query,
  people: People,
  random: RandomStream,
  byIntersection: boolean,
): Query | undefined {
  if (query.kind === 'name')
    return byIntersection
      ? intersectionFor(query.name, people, random)
      : projectionFor([query.name], people, random);
  if (query.kind === 'of') {
    const { operand } = query;
    const together =
      operand.kind === 'or' && operand.parts.every(({ kind }) => kind === 'name')
        ? projectionFor(constantsOf(operand), people, random)
        : undefined;
    const replaced = together ?? replaceConstants(operand, people, random, byIntersection);
    return replaced && { ...query, operand: replaced };
  }
  const [left, right] = query.parts.map((part) => replaceConstants(part, people, random, byIntersection));
  return left && right && { ...query, parts: [left, right] };
}

/**
 * The seed with facts attached wherever they happen to fit, until it states so many: a constant gives way to a question, a
 * set is intersected with one that has a member of it, or a projection is widened by another person. So some facts say
 * nothing new, and some give the answer without the others.
 */
function randomOfSize(people: People, seed: Query, size: number, random: RandomStream): FormalQuestion {
  for (let draw = 0; draw < MOST_DRAWS; draw++) {
    let query: Query | undefined = seed;
    while (query !== undefined && factsIn(query) < size) query = attach(query, people, random);
    const made = query && askable(query, people);
    if (made) return made;
  }
  throw new Error(`${MOST_DRAWS} draws gave no random expansion to ${size} facts`);
}

function attach(query: Query, people: People, random: RandomStream): Query | undefined {
  const at = random.pick(pathsOf(query));
  const place = atPath(query, at);
  const way = random.pick(['replace', 'intersect', 'widen'] as const);
  if (way === 'replace')
    return place.kind === 'name'
      ? maybeWith(query, at, projectionFor([place.name], people, random))
      : undefined;
  if (way === 'widen') {
    if (place.kind !== 'of') return undefined;
    const parts: [Query, Query] = [place.operand, nameOf(random.pick(people.names))];
    return withAt(query, at, { ...place, operand: { kind: 'or', parts } });
  }
  const members = [...execute(place, people.whoIs)];
  if (members.length === 0) return undefined;
  const relation = random.pick(RELATIONS);
  const fact = projection(relation, nameOf(people.whose(relation, random.pick(members))));
  return withAt(query, at, { kind: 'and', parts: [place, fact] });
}

type Path = readonly (0 | 1)[];

const childrenOf = (query: Query): readonly Query[] =>
  query.kind === 'name' ? [] : query.kind === 'of' ? [query.operand] : query.parts;

const pathsOf = (query: Query): Path[] => [
  [],
  ...childrenOf(query).flatMap((child, i) => pathsOf(child).map((path): Path => [i as 0 | 1, ...path])),
];

const atPath = (query: Query, path: Path): Query =>
  path.reduce((part, step) => childrenOf(part)[step]!, query);

function withAt(query: Query, [step, ...rest]: Path, placed: Query): Query {
  if (step === undefined || query.kind === 'name') return placed;
  if (query.kind === 'of') return { ...query, operand: withAt(query.operand, rest, placed) };
  const [left, right] = query.parts;
  return {
    ...query,
    parts: step === 0 ? [withAt(left, rest, placed), right] : [left, withAt(right, rest, placed)],
  };
}

const maybeWith = (query: Query, at: Path, placed: Query | undefined): Query | undefined =>
  placed && withAt(query, at, placed);
