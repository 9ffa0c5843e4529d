import type { Evidence } from './alarm.ts';
import type { Diagnosis } from './diagnosis.ts';
import { errors, hasMastered, now } from './series.ts';

const EQUAL = 0.9;
const SOLVED = 0.1;

/**
 * σ = 0: nearly all samples of a task earn the same, so nothing is learnt from it (DAPO, Yu et al. 2025, arXiv
 * 2503.14476, section 3.2). Tasks that are all solved are no defect, and are left out: where new tasks succeed that
 * often the stage has reached what it can. A method that compares with other tasks, too, or learns from what succeeds,
 * has nothing to learn only where hardly a task is solved besides, and one that learns from a teacher or from hints asks
 * for no contrast.
 */
export const noContrast: Diagnosis = {
  remedy:
    'Where all fail, take easier levels or a longer warm start; where some succeed, check whether the verifier scores everything alike; otherwise sample more generations of a task, or filter groups by their variance.',
  find(series, { contrast }) {
    const equal = now(series, 'equal');
    if (
      contrast === 'none' ||
      equal === null ||
      equal - errors(series, 'equal').now < EQUAL ||
      hasMastered(series)
    )
      return null;
    const alike: Evidence = { what: 'part of groups with σ = 0', now: equal, before: null, limit: EQUAL };
    if (contrast === 'task') return [alike];
    const solved = now(series, 'success');
    if (solved === null || solved > SOLVED) return null;
    return [alike, { what: 'success in training', now: solved, before: null, limit: SOLVED }];
  },
};
