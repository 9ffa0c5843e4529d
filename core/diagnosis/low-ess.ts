import type { Diagnosis } from './diagnosis.ts';
import { now } from './series.ts';

const EFFECTIVE = 0.5;

/**
 * Few of the tokens carry the update, because what was sampled by older or other weights weighs unequally. The effective
 * sample size falls before stale training collapses (Huang et al. 2026, arXiv 2602.17616). It is that of single tokens,
 * for so the losses weigh them.
 */
export const lowEss: Diagnosis = {
  remedy:
    'Let samples be fewer steps old (collect.lag, collect.maxStaleness), lower the learning rate, or leave out what has moved far: importanceRule mask or difference.',
  find(series) {
    const effective = now(series, 'effective');
    if (effective === null || effective > EFFECTIVE) return null;
    const what = 'effective sample size of the importance weights, part of the tokens';
    return [{ what, now: effective, before: null, limit: EFFECTIVE }];
  },
};
