import type { FastVerifier, Task, Verdict } from '../contract/environment.ts';
import { normalizeSquad } from './squad.ts';

/** What an answer lists, each once: what commas, semicolons, lines and the word `and` separate, as SQuAD v1.1 compares it. */
export const listed = (answer: string): ReadonlySet<string> =>
  new Set(
    answer
      .split(/[,;\n]|\band\b/u)
      .map(normalizeSquad)
      .filter((one) => one !== ''),
  );

/** F1 of two sets. A set that has everything has next to no precision, and something that is said twice counts once. */
export function setF1Of(given: ReadonlySet<string>, expected: ReadonlySet<string>): number {
  const common = [...expected].filter((one) => given.has(one)).length;
  return common === 0 ? 0 : (2 * common) / (given.size + expected.size);
}

/** What is expected, all of it. */
type Members = (task: Task) => readonly string[];

/** `set-em`: 1 where an answer lists what is expected, all of it and nothing else, in any order; 0 otherwise. */
export const setExactMatch = (members: Members): FastVerifier =>
  setVerifier('set-em', members, (given, wanted) => (setF1Of(given, wanted) === 1 ? 1 : 0));

/** `set-f1`: F1 of what an answer lists. */
export const setF1 = (members: Members): FastVerifier => setVerifier('set-f1', members, setF1Of);

function setVerifier(name: string, members: Members, score: typeof setF1Of): FastVerifier {
  return {
    name,
    version: '1',
    tier: 'fast',
    cost: { seconds: 0, usd: 0 },
    verify: ({ task, answer }): Verdict => {
      const wanted = members(task);
      if (wanted.length === 0)
        return { kind: 'abstain', reason: 'the task has no expected answer to compare with' };
      if (answer === null) return { kind: 'score', score: 0, evidence: 'no answer' };
      const given = listed(answer);
      return {
        kind: 'score',
        score: score(given, new Set(wanted.map(normalizeSquad))),
        canonical: [...given].toSorted().join(', '),
        evidence: `${answer} for ${wanted.join(', ')}`,
      };
    },
  };
}
