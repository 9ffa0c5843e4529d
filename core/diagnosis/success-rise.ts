import type { Evidence } from './alarm.ts';
import { errors, now } from './series.ts';
import type { Series } from './series.ts';

const GAIN = 0.05;

/**
 * Success in training has not risen by 0.05 from what it was (`gained`: what `series.gain` has risen by since), or, where there are several levels, that of each weighed as
 * it is drawn now. Of few episodes neither can be said: then it may have risen.
 */
export function notRisen(
  series: Series,
  was: number | null,
  gained: number | null = series.gain,
): Evidence | null {
  const is = now(series, 'success');
  if (was === null || is === null) return null;
  const error = errors(series, 'success');
  if (is + Math.hypot(error.now, error.before) > was + GAIN) return null;
  // Success stays where it is, too, where harder and longer tasks are drawn as soon as the easy ones are solved.
  if (gained !== null && gained > GAIN) return null;
  return { what: 'success in training', now: is, before: was, limit: was + GAIN };
}
