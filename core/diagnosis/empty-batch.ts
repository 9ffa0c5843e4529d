import type { Diagnosis } from './diagnosis.ts';
import { noContrast } from './no-contrast.ts';
import { hasMastered, known, now, WINDOW } from './series.ts';

/** Of new tasks that succeed: above it a method of hints may have no task to ask again. */
const HALF = 0.5;

/**
 * Step after step samples episodes and trains on none of them, so the policy stays as it is: no sample with a hint succeeds,
 * no pair can be made, a filter leaves nothing. Where contrast is what is missing, `no-contrast` says so.
 */
export const emptyBatch: Diagnosis = {
  remedy:
    'Look at the episodes with `gradus find`. Where none is what the method trains on, take easier levels or a longer warm start; one on hints too where `hindsight` is to use them. Otherwise loosen what filters them.',
  find(series, setting) {
    const trained = known(series, 'learnt');
    if (trained.length < WINDOW || trained.some((tokens) => tokens > 0)) return null;
    if (hasMastered(series) || noContrast.find(series, setting) !== null) return null;
    // A method of hints asks again only where fewer than half of the samples succeed; there may be no such task.
    const asked = known(series, 'besides').every((tokens) => tokens > 0);
    if (setting.contrast === 'none' && !asked && (now(series, 'success') ?? 0) > HALF) return null;
    return [{ what: 'trained tokens for each sampled one', now: 0, before: null, limit: 0 }];
  },
};
