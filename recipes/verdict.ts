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
 * Whether a treatment lies where it is said to: `higher` or `lower` than its control. Of every seed there is a figure of each.
 * The difference of a seed is one value, because both sides share the seed's warm start and its tasks. Its mean has the 95 % interval of Student's t.
 * The direction is confirmed where the whole interval lies on its side of 0. So with no difference at all one claim in
 * 40 is confirmed by chance, where differences of seeds are near to normal.
 */
export function judge(
  treatment: readonly number[],
  control: readonly number[],
  direction: 'higher' | 'lower' = 'higher',
): Judged {
  if (treatment.length !== control.length)
    throw new RangeError(`${treatment.length} seeds of the treatment, and ${control.length} of its control`);
  const difference = meanWithStudent(
    treatment.map((value, seed) => value - control[seed]!),
    CONFIDENCE,
  );
  return { verdict: verdictOf(difference, direction), difference };
}

function verdictOf(difference: Mean | null, direction: 'higher' | 'lower'): Verdict {
  // Equal differences have an interval without a width. That says that so few seeds show none, not that there is none.
  if (difference === null || difference.low === difference.high) return 'undecided';
  if (difference.low > 0) return direction === 'higher' ? 'confirmed' : 'not confirmed';
  if (difference.high < 0) return direction === 'lower' ? 'confirmed' : 'not confirmed';
  return 'undecided';
}
