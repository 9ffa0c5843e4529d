import type { FastVerifier } from '../../contract/environment.ts';
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
 * 0 where there is no box, and where more stands in it than 500 characters; abstains on a task without an expected
 * answer, which may have a box of its own.
 */
export function boxedMath({ bare = false, lowestTerms = true }: BoxedMathOptions = {}): FastVerifier {
  return {
    name: 'boxed-math',
    version: `6;bare=${bare};lowestTerms=${lowestTerms}`,
    tier: 'fast',
    cost: { seconds: 0, usd: 0 },
    verify: ({ task, answer }) => {
      if (task.answer === undefined)
        return { kind: 'abstain', reason: 'the task has no expected answer to compare with' };
      if (answer === null) return { kind: 'score', score: 0, evidence: 'no answer' };
      const boxed = lastBoxed(answer) ?? (bare ? answer : null);
      if (boxed === null) return { kind: 'score', score: 0, evidence: 'no \\boxed{…} that is closed' };
      if (boxed.length > LONGEST_MATH_ANSWER) {
        return { kind: 'score', score: 0, evidence: `${boxed.length} characters are no answer` };
      }
      const expected = readMathValue(lastBoxed(task.answer) ?? task.answer);
      const given = readMathValue(boxed);
      const score = sameValue(expected, given, { lowestTerms }) ? 1 : 0;
      return {
        kind: 'score',
        score,
        canonical: canonicalValue(given),
        evidence: `${boxed} for ${task.answer}`,
      };
    },
  };
}
