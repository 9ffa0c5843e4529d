import type { Evidence } from './alarm.ts';
import type { Diagnosis } from './diagnosis.ts';
import { before, hasMastered, now } from './series.ts';
import { notRisen } from './success-rise.ts';
import { varianceFallen } from './variance-fall.ts';

const FALL = 0.1;

/**
 * The policy has nearly stopped to choose before it can do its tasks (DAPO, Yu et al. 2025, arXiv 2503.14476, section
 * 3.1): a tenth of the entropy that the stage began with is left. A policy that has become sure of what it does while
 * its success rises, and whose samples still differ where it counts, is no alarm: so success has not risen, or the
 * rewards of a task's samples differ half as much.
 */
export const entropyCollapse: Diagnosis = {
  remedy:
    'Raise the temperature or the entropy bonus, raise clipRatioHigh or beta, lower the learning rate; lost entropy comes back only with an earlier checkpoint.',
  find(series) {
    const [first, last] = [before(series, 'entropy'), now(series, 'entropy')];
    if (first === null || last === null || last > FALL * first || hasMastered(series)) return null;
    const fallen: Evidence = { what: 'entropy, nats a token', now: last, before: first, limit: FALL * first };
    const loss = varianceFallen(series) ?? notRisen(series, before(series, 'success'));
    return loss && [fallen, loss];
  },
};
