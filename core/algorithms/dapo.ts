import { z } from 'zod';
import { perSample } from './advantage.ts';
import { mixesSuccess, rewardsDiffer } from './group-baseline.ts';
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
 *   only groups of which some samples succeed and some fail are learnt from, and others are drawn in the place of the rest
 *   (eq. 11); `filter: reward` keeps each group whose rewards differ, by shaping too, as verl can;
 *   loss: the ratio clipped to [1 − low, 1 + high] with high > low (eq. 10), mean over all tokens (eq. 12), no KL.
 *
 * The soft overlong penalty (eq. 13) is a rule of the reward. What the sampling leaves after `maxRefills` is learnt from.
 */
const schema = z.strictObject({
  kind: z.literal('dapo').describe('Decoupled clip and dynamic sampling (Yu et al. 2025).'),
  filter: z
    .enum(['correctness', 'reward'])
    .default('correctness')
    .describe(
      'Groups that are trained on. correctness: some samples succeed and some fail. reward: rewards differ, even if only by shaping.',
    ),
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
  branches: true,
  ignoresScale: () => true,
  offPolicy: true,
  plan: (spec, sampling) =>
    planOf(spec, clippedObjective({ ...spec, aggregation: 'token' }, sampling), {
      refills: spec.maxRefills,
      ...(spec.filter === 'correctness' && { refillBy: 'correctness' }),
    }),
  advantages: (groups, { filter }) => {
    // A run that began before there was a filter has none, and goes by rewards.
    const isTrained = filter === 'correctness' ? mixesSuccess : rewardsDiffer;
    return perSample(groups, (reward, { mean, deviation }) => (reward - mean) / deviation).filter(
      ({ group }) => isTrained(groups[group]!),
    );
  },
  refuse: refuseImportance,
};
