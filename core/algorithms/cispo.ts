import { z } from 'zod';
import { positive } from '../fields.ts';
import { perSample } from './advantage.ts';
import type { Method } from './method.ts';
import { entropyBonus, ofSamples, passes, planOf, refills } from './surrogate.ts';

/**
 * CISPO, clipped importance sampling policy optimization (MiniMax-M1, Chen et al. 2025, arXiv 2506.13585, eqs. 4 and 5):
 *
 *   A_i = (r_i − mean r) / std r   over the samples of one task;
 *   loss: −sg(min(ratio, 1 + high)) · A · log π, mean over all tokens: a ratio that is too large loses weight, and no
 *   token loses its gradient.
 */
const schema = z.strictObject({
  kind: z
    .literal('cispo')
    .describe('Clips the importance weight, and no token loses its gradient (MiniMax 2025).'),
  clipRatioHigh: positive(100, 'above it nothing is clipped')
    .default(4)
    .describe('A ratio counts for 1 + this at most.'),
  ...entropyBonus,
  ...passes,
  ...refills,
});

export const cispo: Method<typeof schema> = {
  schema,
  perGroup: false,
  readsTurns: false,
  branches: true,
  ignoresScale: () => true,
  offPolicy: false,
  plan: (spec, sampling) => {
    const { clipRatioHigh, entropyBonus: bonus, maxRefills } = spec;
    return planOf(
      spec,
      { kind: 'cispo', ...ofSamples(sampling), aggregation: 'token', clipRatioHigh, entropyBonus: bonus },
      { refills: maxRefills },
    );
  },
  advantages: (groups) => perSample(groups, (reward, { mean, deviation }) => (reward - mean) / deviation),
};
