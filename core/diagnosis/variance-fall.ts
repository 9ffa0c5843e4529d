import type { Evidence } from './alarm.ts';
import { before, now } from './series.ts';
import type { Series } from './series.ts';

const FALL = 0.5;

/**
 * The samples of a task differ half as much in reward as when the stage began, or less. A policy that gets better at its
 * tasks has less variance, too: so it may fall as far as success has risen.
 */
export function varianceFallen(series: Series): Evidence | null {
  const [first, last] = [before(series, 'variance'), now(series, 'variance')];
  if (first === null || last === null) return null;
  const limit = FALL * allowance(series) * first;
  return last > limit ? null : { what: 'variance of rewards within groups', now: last, before: first, limit };
}

/** By what factor p (1 − p) has fallen with a success p that has risen; 1 where it has not. */
function allowance(series: Series): number {
  const [first, last] = [before(series, 'success'), now(series, 'success')];
  if (first === null || last === null || last <= first) return 1;
  return Math.min(1, (last * (1 - last)) / (first * (1 - first)));
}
