import type { FastVerifier } from '../contract/environment.ts';
import { comparedVerifier } from './compared.ts';
import type { Expected } from './compared.ts';
import { normalizeSquad } from './squad.ts';

/**
 * What an answer lists, each once: what commas, semicolons, lines and the word `and` separate, as SQuAD v1.1 compares it: in
 * any case. So nobody can list a member whose name has one of these in it, and a task is to expect none.
 */
export const listed = (answer: string): ReadonlySet<string> =>
  new Set(
    answer
      .split(/[,;\n]|\band\b/iu)
      .map(normalizeSquad)
      .filter((one) => one !== ''),
  );

/** F1 of two sets. A set that has everything has next to no precision, and something that is said twice counts once. */
export function setF1Of(given: ReadonlySet<string>, expected: ReadonlySet<string>): number {
  const common = [...expected].filter((one) => given.has(one)).length;
  return common === 0 ? 0 : (2 * common) / (given.size + expected.size);
}

/** `set-em`: 1 where an answer lists what is expected, all of it and nothing else, in any order; 0 otherwise. */
export const setExactMatch = (members: Expected): FastVerifier =>
  setVerifier('set-em', members, (given, wanted) => (setF1Of(given, wanted) === 1 ? 1 : 0));

/** `set-f1`: F1 of what an answer lists. */
export const setF1 = (members: Expected): FastVerifier => setVerifier('set-f1', members, setF1Of);

const setVerifier = (name: string, members: Expected, score: typeof setF1Of): FastVerifier =>
  comparedVerifier(
    name,
    '2',
    members,
    (answer) => [...listed(answer)].toSorted().join(', '),
    (answer, wanted) => ({
      score: score(listed(answer), new Set(wanted.map(normalizeSquad))),
      expected: wanted.join(', '),
    }),
  );
