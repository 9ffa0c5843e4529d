import type { FastVerifier, Verdict } from '../../contract/environment.ts';
import { lastBoxed } from './last-boxed.ts';
import { canonicalValue, LONGEST_MATH_ANSWER, readMathValue, sameValue } from './math-value.ts';

export interface BoxedMathOptions {
  /** An answer without a box is read as a whole. */
  bare?: boolean;
  /** 6/8 does not count for 3/4, nor 12/4 for 3: else copying a division from the question would be paid. */
  lowestTerms?: boolean;
}

/**
 * 1 when the last `\boxed{…}` of the answer says what the task expects, by value: integers, decimals (repeating ones,
 * too), fractions, mixed numbers, powers of ten, percentages, thousands separators and units as exact rational numbers
 * (fraction.js), and tuples, intervals, sets, unions and matrices of them. Nothing is evaluated, and what is not understood
 * is compared by its letters. The convention is that of MATH (Hendrycks et al. 2021) and of what was trained on it since.
 *
 * 0 where there is no box, and where more stands in it than 500 characters: neither can be read as an answer. Abstains on a
 * task without an expected answer, which may have a box of its own.
 */
export function boxedMath({ bare = false, lowestTerms = true }: BoxedMathOptions = {}): FastVerifier {
  return {
    name: 'boxed-math',
    version: `6;bare=${bare};lowestTerms=${lowestTerms}`,
    tier: 'fast',
    cost: { seconds: 0, usd: 0 },
    verify: ({ task, answer }): Verdict => {
      const boxed = answer === null ? null : (lastBoxed(answer) ?? (bare ? answer : null));
      const given = boxed !== null && boxed.length <= LONGEST_MATH_ANSWER ? readMathValue(boxed) : null;
      const canonical = given === null ? '' : canonicalValue(given);
      if (task.answer === undefined)
        return { kind: 'abstain', reason: 'the task has no expected answer to compare with', canonical };
      const nothing = (evidence: string): Verdict => ({ kind: 'score', score: 0, canonical, evidence });
      if (answer === null) return nothing('no answer');
      if (boxed === null) return nothing('no \\boxed{…} that is closed');
      if (given === null) return nothing(`${boxed.length} characters are no answer`);
      const expected = readMathValue(lastBoxed(task.answer) ?? task.answer);
      const score = sameValue(expected, given, { lowestTerms }) ? 1 : 0;
      return { kind: 'score', score, canonical, evidence: `${boxed} for ${task.answer}` };
    },
  };
}
