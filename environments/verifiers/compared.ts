import type { FastVerifier, Task, Verdict } from '../contract/environment.ts';

/** What a task expects for an answer; none: nothing can be said of one. */
export type Expected = (task: Task) => readonly string[];

/** The one that the task itself has. */
export const theAnswer: Expected = ({ answer }) => (answer === undefined ? [] : [answer]);

/** Compares an answer with what is expected: what it is worth, and what was expected, in words. */
type Compare = (answer: string, wanted: readonly string[]) => { score: number; expected: string };

/**
 * A verifier of answers alone: no answer is worth nothing, and without an expected one it abstains. `canonicalOf` says what an
 * answer comes down to, whatever is expected.
 */
export const comparedVerifier = (
  name: string,
  version: string,
  expected: Expected,
  canonicalOf: (answer: string) => string,
  compare: Compare,
): FastVerifier => ({
  name,
  version,
  tier: 'fast',
  cost: { seconds: 0, usd: 0 },
  verify: ({ task, answer }): Verdict => {
    const wanted = expected(task);
    const canonical = answer === null ? '' : canonicalOf(answer);
    if (wanted.length === 0)
      return { kind: 'abstain', reason: 'the task has no expected answer to compare with', canonical };
    if (answer === null) return { kind: 'score', score: 0, canonical, evidence: 'no answer' };
    const { score, expected: said } = compare(answer, wanted);
    return { kind: 'score', score, canonical, evidence: `${answer} for ${said}` };
  },
});
