import type { Diagnosis } from './diagnosis.ts';
import { hasMastered, now } from './series.ts';

const EQUAL = 0.9;

/**
 * σ = 0: nearly all samples of a task earn the same, so nothing is learnt from it (seeds 004, 9.1). Tasks that are all
 * solved are no defect, and are left out: where new tasks succeed that often the stage has reached what it can.
 */
export const noContrast: Diagnosis = {
  remedy:
    'Where all fail, take easier levels or a longer warm start; where some succeed, look whether the verifier says the same of everything; else sample more generations of a task, or filter groups by their variance.',
  find(series) {
    const equal = now(series, 'equal');
    if (equal === null || equal < EQUAL || hasMastered(series)) return null;
    return [{ what: 'part of groups with σ = 0', now: equal, before: null, limit: EQUAL }];
  },
};
