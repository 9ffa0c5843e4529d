import { GradusError } from '../../../../core/errors.ts';

/**
 * A question in its formal form, after WebShaper (Tao et al. 2025, arXiv 2507.15061): a set of people. `of` is a knowledge
 * projection, R(V) = {u | (u, R, v) is a fact for a v in V}; `and` is an intersection, `or` a union; a name is the set of it
 * alone. A question shares no part with itself: it is a tree.
 */
export type Query =
  | { kind: 'name'; name: string }
  | { kind: 'of'; relation: Relation; operand: Query }
  | { kind: 'and' | 'or'; parts: readonly [Query, Query] };

export const RELATIONS = ['pupil', 'guest', 'rival', 'tenant'] as const;
export type Relation = (typeof RELATIONS)[number];

/** What is known: who is a `relation` of somebody, in the order of the facts. */
export type WhoIs = (relation: Relation, name: string) => readonly string[];

export const nameOf = (name: string): Query => ({ kind: 'name', name });
export const projection = (relation: Relation, operand: Query): Query => ({ kind: 'of', relation, operand });

/** The set that a question asks for, exactly: by executing it on the facts. */
export function execute(query: Query, whoIs: WhoIs): ReadonlySet<string> {
  if (query.kind === 'name') return new Set([query.name]);
  if (query.kind === 'of') {
    const operand = execute(query.operand, whoIs);
    return new Set([...operand].flatMap((name) => whoIs(query.relation, name)));
  }
  const [left, right] = query.parts.map((part) => execute(part, whoIs)) as [Set<string>, Set<string>];
  return query.kind === 'or'
    ? new Set([...left, ...right])
    : new Set([...left].filter((one) => right.has(one)));
}

/** `and(pupil(guest(C@Bake)), rival(or(C@Timo, C@Dalu)))`; `C@` marks a constant, as in the paper. */
export function printQuery(query: Query): string {
  if (query.kind === 'name') return `C@${query.name}`;
  const [head, parts] = query.kind === 'of' ? [query.relation, [query.operand]] : [query.kind, query.parts];
  return `${head}(${parts.map(printQuery).join(', ')})`;
}

/** The same of two questions that differ in the order of an intersection's or a union's parts alone. */
export function printUnordered(query: Query): string {
  if (query.kind === 'name') return `C@${query.name}`;
  if (query.kind === 'of') return `${query.relation}(${printUnordered(query.operand)})`;
  return `${query.kind}(${query.parts.map(printUnordered).toSorted().join(', ')})`;
}

/** Throws GradusError('environment', 'query') for a text that `printQuery` does not write. */
export function parseQuery(text: string): Query {
  let at = 0;
  const refuse = (what: string): GradusError =>
    new GradusError(
      'environment',
      'query',
      `a question ${what}, at character ${at} of ${JSON.stringify(text)}`,
    );
  const take = (pattern: RegExp, what: string): string => {
    const found = pattern.exec(text.slice(at))?.[0];
    if (found === undefined) throw refuse(`has ${what}`);
    at += found.length;
    return found;
  };
  const read = (): Query => {
    if (text.startsWith('C@', at)) {
      at += 2;
      return nameOf(take(/^[A-Za-z]+/u, 'a name after C@'));
    }
    const head = take(/^[a-z]+/u, 'a relation, and, or, or C@ and a name');
    take(/^\(/u, 'a bracket after that');
    const first = read();
    if (head === 'and' || head === 'or') {
      take(/^, /u, 'a comma between two parts');
      const second = read();
      take(/^\)/u, 'a closing bracket after two parts');
      return { kind: head, parts: [first, second] };
    }
    take(/^\)/u, 'a closing bracket after what is projected');
    const relation = RELATIONS.find((one) => one === head);
    if (relation === undefined) throw refuse(`knows the relations ${RELATIONS.join(', ')}, and not ${head}`);
    return projection(relation, first);
  };
  const query = read();
  if (at < text.length) throw refuse('ends with its last bracket');
  return query;
}

/** The constants, from left to right. */
export function constantsOf(query: Query): string[] {
  if (query.kind === 'name') return [query.name];
  return (query.kind === 'of' ? [query.operand] : query.parts).flatMap(constantsOf);
}

/** How many facts a question states of what it is about: one for each operand of each projection. */
export function factsIn(query: Query): number {
  if (query.kind === 'name') return 0;
  if (query.kind === 'of') return operandsOf(query.operand) + factsIn(query.operand);
  return factsIn(query.parts[0]) + factsIn(query.parts[1]);
}

const operandsOf = (operand: Query): number =>
  operand.kind === 'or' ? operandsOf(operand.parts[0]) + operandsOf(operand.parts[1]) : 1;
