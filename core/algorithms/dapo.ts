import { z } from 'zod';
import { groupRelative, tellsApart } from './group-baseline.ts';
import type { Method } from './method.ts';
import {
  clip,
  clippedObjective,
  entropyBonus,
  importance,
  passes,
  planOf,
  refills,
  refuseImportance,
} from './surrogate.ts';

/**
 * DAPO, decoupled clip and dynamic sampling policy optimization (Yu et al. 2025, arXiv 2503.14476):
 *
 *   A_i = (r_i − mean r) / std r   over the samples of one task (eq. 9);
 *   only groups whose samples differ are learnt from, and others are drawn in the place of the rest (eq. 11);
 *   loss: the ratio clipped to [1 − low, 1 + high] with high > low (eq. 10), mean over all tokens (eq. 12), no KL.
 *
 * The soft overlong penalty (eq. 13) is a rule of the reward. What the sampling leaves after `maxRefills` is learnt from.
 */
const schema = z.strictObject({
  kind: z.literal('dapo'),
  ...clip,
  ...entropyBonus,
  ...passes,
  ...importance,
  maxRefills: refills.maxRefills.default(4),
});

export const dapo: Method<typeof schema> = {
  schema,
  perGroup: true,
  readsTurns: false,
  ignoresScale: () => true,
  offPolicy: true,
  plan: (spec, sampling) =>
    planOf(spec, clippedObjective({ ...spec, aggregation: 'token' }, sampling), { refills: spec.maxRefills }),
  credit: (groups) => groupRelative(groups, 'group').filter(({ group }) => tellsApart(groups[group]!)),
  refuse: refuseImportance,
};
