import type { Evidence } from './alarm.ts';
import { before, errors, now, past } from './series.ts';
import type { Series } from './series.ts';
import type { Signal } from './signals.ts';

/** From when on a part of episodes or calls that should be small is too large. */
export interface RateLimits {
  /** Too much where it has grown by `rise` since the stage began. */
  grown: number;
  rise: number;
  /** Too much after twenty steps, unless it is coming down. */
  severe: number;
  /** The same after forty steps. */
  lasting: number;
}

/** What comes down by a tenth in twenty steps is fading. */
const FADING = 0.9;
/** So much is too much from the first window on, wherever it goes. */
const NEARLY_ALL = 0.9;

/**
 * A rate that is too high, and that grows or stays, by more than its standard error. Policies begin clumsy: what fades by
 * itself is no alarm, so a level alone says nothing until there is a direction.
 */
export function tooHigh(series: Series, signal: Signal, limits: RateLimits, what: string): Evidence[] | null {
  const [first, ago, last] = [before(series, signal), past(series, signal), now(series, signal)];
  if (first === null || last === null) return null;
  const error = errors(series, signal);
  const over = (limit: number): Evidence[] => [{ what, now: last, before: first, limit }];
  if (last >= NEARLY_ALL) return over(NEARLY_ALL);
  const grownTo = Math.max(limits.grown, first + limits.rise);
  if (last - Math.hypot(error.now, error.before) >= grownTo) return over(grownTo);
  // What it was then is known about as well as what it is now.
  if (ago === null || last - Math.SQRT2 * error.now <= FADING * ago.value) return null;
  const limit = ago.isFirst ? limits.severe : limits.lasting;
  return last - error.now >= limit ? over(limit) : null;
}
