import { meanWithStudent } from '../core/statistics/student.ts';
import type { Mean } from '../core/statistics/intervals.ts';

/** What is said of a direction. `not confirmed`: the opposite is so. `undecided`: the seeds do not say. */
export type Verdict = 'confirmed' | 'not confirmed' | 'undecided';

const CONFIDENCE = 0.95;

export interface Judged {
  verdict: Verdict;
  /** Treatment less control, seed by seed; null for a single seed. */
  difference: Mean | null;
}

/**
 * Whether a treatment is better than its control, from the success of each for every seed. The difference of a seed is
 * one value, because both sides share the seed's warm start and its tasks. Its mean has the 95 % interval of Student's t.
 * The direction is confirmed where the whole interval lies above 0. So with no difference at all one recipe in
 * 40 is confirmed by chance, where differences of seeds are near to normal.
 */
export function judge(treatment: readonly number[], control: readonly number[]): Judged {
  if (treatment.length !== control.length)
    throw new RangeError(`${treatment.length} seeds of the treatment, and ${control.length} of its control`);
  const difference = meanWithStudent(
    treatment.map((value, seed) => value - control[seed]!),
    CONFIDENCE,
  );
  return { verdict: verdictOf(difference), difference };
}

function verdictOf(difference: Mean | null): Verdict {
  // Equal differences have an interval without a width. That says that so few seeds show none, not that there is none.
  if (difference === null || difference.low === difference.high) return 'undecided';
  if (difference.low > 0) return 'confirmed';
  return difference.high < 0 ? 'not confirmed' : 'undecided';
}
