import { execute, factsIn } from './query.ts';
import type { Query, WhoIs } from './query.ts';

/**
 * What an expert searches for, in order: a query for each person of each set that is projected. Of an intersection the part
 * with fewer facts comes first. Where one person is left of it the expert stops: the answer is not empty, so that person is
 * in the other part, too. So facts that say nothing new are not looked up. Within a union (`filled` false) that cannot be
 * said, and everything is looked up.
 */
export function searchesFor(query: Query, whoIs: WhoIs, filled = true): string[] {
  if (query.kind === 'name') return [];
  if (query.kind === 'of') {
    const names = [...execute(query.operand, whoIs)];
    return [
      ...searchesFor(query.operand, whoIs, filled),
      ...names.map((name) => `${query.relation} of ${name}`),
    ];
  }
  if (query.kind === 'or') return query.parts.flatMap((part) => searchesFor(part, whoIs, false));
  const [first, second] = query.parts.toSorted((a, b) => factsIn(a) - factsIn(b)) as [Query, Query];
  const found = searchesFor(first, whoIs, filled);
  return filled && execute(first, whoIs).size === 1
    ? found
    : [...found, ...searchesFor(second, whoIs, filled)];
}
