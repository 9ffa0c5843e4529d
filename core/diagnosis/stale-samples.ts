import type { Diagnosis } from './diagnosis.ts';
import { now } from './series.ts';

/** Of the bound. */
const STALE = 0.9;

/**
 * Samples are about as old as they may be, because groups that have ended wait for the learner. By Little's law the mean
 * age in steps is what is in flight or waits, in steps' worth. So it is not asked where what may be in flight fills the
 * bound by itself: the spec has ordered that age.
 */
export const staleSamples: Diagnosis = {
  remedy:
    'Groups that have ended wait for the learner: lower collect.inFlight or collect.maxStaleness, which makes samples fresher and no step later, or give the learner more.',
  find(series, { asynchronous }) {
    if (asynchronous === null || asynchronous.inFlight >= STALE * asynchronous.maxStaleness) return null;
    const stale = now(series, 'staleness');
    const limit = STALE * asynchronous.maxStaleness;
    if (stale === null || stale < limit) return null;
    return [{ what: 'staleness of the sampled tokens, learner steps', now: stale, before: null, limit }];
  },
};
