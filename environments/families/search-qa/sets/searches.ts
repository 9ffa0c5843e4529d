import { execute, factsIn } from './query.ts';
import type { Query, WhoIs } from './query.ts';

/**
 * What an expert searches for, in order: a query for each person of each set that is projected. Of an intersection the part
 * with fewer facts comes first. Where one person is left of it the expert stops: no intersection is empty, so that person is
 * in the other part, too. So facts that say nothing new are not looked up.
 */
export function searchesFor(query: Query, whoIs: WhoIs): string[] {
  if (query.kind === 'name') return [];
  if (query.kind === 'of') {
    const names = [...execute(query.operand, whoIs)];
    return [...searchesFor(query.operand, whoIs), ...names.map((name) => `${query.relation} of ${name}`)];
  }
  const [first, second] = query.parts.toSorted((a, b) => factsIn(a) - factsIn(b)) as [Query, Query];
  const found = searchesFor(first, whoIs);
  const enough = query.kind === 'and' && execute(first, whoIs).size === 1;
  return enough ? found : [...found, ...searchesFor(second, whoIs)];
}
