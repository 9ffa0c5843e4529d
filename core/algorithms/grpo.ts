import { z } from 'zod';
import { perSample } from './advantage.ts';
import type { Method } from './method.ts';
import {
  clip,
  clippedObjective,
  entropyBonus,
  importance,
  klToReference,
  passes,
  planOf,
  refills,
  refuseImportance,
  tokenMean,
} from './surrogate.ts';

/**
 * GRPO, group relative policy optimization (Shao et al. 2024, "DeepSeekMath", section 4.1.2 and eq. 3):
 *
 *   A_i = (r_i − mean r) / std r   over the samples of one task, the same for every sampled token of sample i;
 *   loss: the clipped ratio of PPO and β · K3 to the reference, as a mean over tokens.
 *
 * Dr. GRPO (Liu et al. 2025) is `scaleRewards: none` with `aggregation: dr-grpo`. The defaults of the clip (0.2 and
 * 0.28) and of the mean (over tokens) are those of DAPO (Yu et al. 2025).
 */
const schema = z.strictObject({
  kind: z
    .literal('grpo')
    .default('grpo')
    .describe(
      'Group relative policy optimization (Shao et al. 2024), with the clip and the mean over tokens of DAPO by default.',
    ),
  scaleRewards: z
    .enum(['group', 'none'])
    .default('group')
    .describe(
      'Divide by the deviation of the group (GRPO), or not: Dr. GRPO is none with aggregation dr-grpo.',
    ),
  leastDeviation: z
    .number()
    .min(0)
    .optional()
    .describe(
      'Divide by no less than this, in units of reward: a group whose rewards hardly differ is not blown up. Default 0.',
    ),
  ...clip,
  ...klToReference,
  ...entropyBonus,
  ...tokenMean,
  ...passes,
  ...importance,
  ...refills,
});

export const grpo: Method<typeof schema> = {
  schema,
  perGroup: true,
  readsTurns: false,
  branches: true,
  ignoresScale: ({ scaleRewards, leastDeviation = 0 }) => scaleRewards === 'group' && leastDeviation === 0,
  offPolicy: true,
  plan: (spec, sampling) => planOf(spec, clippedObjective(spec, sampling), { refills: spec.maxRefills }),
  advantages: (groups, { scaleRewards, leastDeviation = 0 }) =>
    perSample(
      groups,
      (reward, { mean, deviation }) =>
        (reward - mean) / (scaleRewards === 'group' ? Math.max(deviation, leastDeviation) : 1),
    ),
  refuse: (spec, context) => [
    ...refuseImportance(spec, context),
    ...(spec.scaleRewards === 'none' && spec.leastDeviation !== undefined
      ? [{ field: 'leastDeviation', message: 'does nothing where scaleRewards is none: leave it out' }]
      : []),
  ],
};
