import type { Limits, Ran } from '../../sandbox/contract.ts';

/** How the sandbox ended without a report: `exit` where the tree ended whoever was to report. */
export interface NoReport {
  ended: Ran['ended'];
  /** Whether who was to report was kept from it: it ends a run that is over its time, and did not. */
  stopped: boolean;
}

/**
 * Seconds by the clock for so many of processor time, of which tests need a part: on a machine that is as busy as that they
 * come to their end, and what waits for ever has failed.
 */
export const wallSecondsOf = (cpuSeconds: number): number => 4 * cpuSeconds + 10;

/** What a sandbox has beyond the runs in it: for Python's start, the guard, the canaries and two trees. */
export const SPARE_SECONDS = 20;

/** Of the code under test, where it has a sandbox of its own. */
export const testRunLimits = (cpuSeconds: number): Pick<Limits, 'wallSeconds' | 'cpuSeconds'> => ({
  wallSeconds: wallSecondsOf(cpuSeconds),
  cpuSeconds,
});
