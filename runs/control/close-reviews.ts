import type { Client } from '@temporalio/client';
import { GradusError, isA } from '../../core/errors.ts';
import type { Withdrawal } from '../../core/ladder/opinions.ts';
import { openReviews } from '../ladder/reviews.ts';
import { inParallel } from '../../store/in-parallel.ts';
import { withdrawOpinion } from './review.ts';

export interface ClosedReviews {
  closed: string[];
  /** Reviews that refused, or did not answer, and why. */
  left: { id: string; why: string }[];
}

/**
 * Closes the open reviews of a run that is over, as abstentions: nothing of the run waits for them. Those for which another
 * run or a sweep waits stay open. Throws what Temporal throws when it is away.
 */
export async function closeReviewsOf(
  temporal: Client,
  run: string,
  by: Omit<Withdrawal, 'all'>,
  { patienceMs }: { patienceMs: number },
): Promise<ClosedReviews> {
  const { reviews } = await openReviews(temporal);
  const theirs = reviews.filter((review) => review.runOver && review.run === run);
  const left: ClosedReviews['left'] = [];
  const closed = await inParallel(theirs, async ({ id }) => {
    try {
      await withdrawOpinion(temporal, id, { ...by, all: true }, { patienceMs });
      return [id];
    } catch (error) {
      if (!isA(error, GradusError) || error.type === 'temporal-unreachable') throw error;
      left.push({ id, why: error.message });
      return [];
    }
  });
  return { closed: closed.flat(), left };
}
