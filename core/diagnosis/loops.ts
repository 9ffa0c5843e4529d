import type { Evidence } from './alarm.ts';
import type { Diagnosis } from './diagnosis.ts';
import { before, errors, now } from './series.ts';
import type { Series } from './series.ts';
import type { Signal } from './signals.ts';

/** A rise since the stage began, the least and the most that is too much for whatever beginning. */
const CALLS = { rise: 0.1, least: 0.2, most: 0.5 };
const TOKENS = { rise: 0.2, least: 0.3, most: 0.7 };

/**
 * Episodes repeat themselves. A fifth of their calls they have made before, to the letter and with the same result, and
 * a tenth more than when the stage began; or three runs of four tokens in ten stood in the same turn before (seq-rep-4,
 * Welleck et al. 2020, arXiv 1908.04319), two more.
 * Of a rise, what counts is beyond its standard error.
 */
export const loops: Diagnosis = {
  remedy:
    'Let repeated calls cost something (tool-shaping) and lower maxTurns; raise the temperature or give calls an ε; check whether the tool’s answers are of use to the policy.',
  find(series) {
    const evidence = [
      repeated(
        series,
        'repeated',
        CALLS,
        'part of calls that the episode has made before, with the same result',
      ),
      repeated(series, 'echoed', TOKENS, 'part of runs of four tokens that the turn has had before'),
    ].filter((one) => one !== null);
    return evidence.length === 0 ? null : evidence;
  },
};

function repeated(series: Series, signal: Signal, limits: typeof CALLS, what: string): Evidence | null {
  const [first, last] = [before(series, signal), now(series, signal)];
  const error = errors(series, signal);
  const slack =
    first === null || last === null || last >= limits.most ? 0 : Math.hypot(error.now, error.before);
  const limit =
    first === null ? limits.most : Math.min(limits.most, Math.max(limits.least, first + limits.rise));
  if (last === null || last - slack < limit) return null;
  return { what, now: last, before: first, limit };
}
