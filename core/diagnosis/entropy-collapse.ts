import type { Diagnosis } from './diagnosis.ts';
import { before, hasMastered, now } from './series.ts';

const FALL = 0.1;

/**
 * The policy has nearly stopped to choose before it can do its tasks (seeds 004, 9.1: "KL collapse"; DAPO, Yu et al.
 * 2025, arXiv 2503.14476, section 3.1): a tenth of the entropy that the stage began with is left.
 */
export const entropyCollapse: Diagnosis = {
  remedy:
    'Raise the temperature or the entropy bonus, raise clipRatioHigh or beta, lower the learning rate; what is gone comes back only with an earlier checkpoint.',
  find(series) {
    const [first, last] = [before(series, 'entropy'), now(series, 'entropy')];
    if (first === null || last === null || last > FALL * first || hasMastered(series)) return null;
    return [{ what: 'entropy, nats a token', now: last, before: first, limit: FALL * first }];
  },
};
