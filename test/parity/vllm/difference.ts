import { rate, wilson } from '../../../core/statistics/intervals.ts';
import type { Proportion } from '../../../core/statistics/intervals.ts';

const CONFIDENCE = 0.95;

/**
 * How much more often one succeeds than the other, with the interval of Newcombe (1998, Statistics in Medicine 17, 873–890,
 * method 10) for two independent shares.
 */
export function differenceOf(served: Proportion, local: Proportion) {
  const [one, other] = [rate(served), rate(local)];
  const [a, b] = [wilson(served, CONFIDENCE), wilson(local, CONFIDENCE)];
  return {
    served: { share: one, ...a, ...served },
    local: { share: other, ...b, ...local },
    difference: one - other,
    low: one - other - Math.hypot(one - a.low, b.high - other),
    high: one - other + Math.hypot(a.high - one, other - b.low),
  };
}
