import { z } from 'zod';
import { positive } from '../fields.ts';
import { perSample } from './advantage.ts';
import type { Method } from './method.ts';
import { ofSamples, passes, planOf, refills } from './surrogate.ts';

/**
 * GSPO, group sequence policy optimization (Zheng et al. 2025, arXiv 2507.18071):
 *
 *   A_i = (r_i − mean r) / std r   over the samples of one task;
 *   loss: the clipped ratio of a whole sequence, s_i = exp(mean over tokens of log π − log π_old), mean over sequences.
 *
 * Its clip is some hundred times tighter than that of a token's ratio, for a mean of many varies less.
 */
const schema = z.strictObject({
  kind: z.literal('gspo').describe('Clips the ratio of whole sequences (Zheng et al. 2025).'),
  clipRatioLow: positive(1, 'a ratio is never below 0')
    .default(3e-4)
    .describe('How far below 1 the ratio of a sequence still counts.'),
  clipRatioHigh: positive(100, 'above it nothing is clipped')
    .default(4e-4)
    .describe('How far above 1 the ratio of a sequence still counts.'),
  ...passes,
  ...refills,
});

export const gspo: Method<typeof schema> = {
  schema,
  perGroup: false,
  readsTurns: false,
  ignoresScale: () => true,
  offPolicy: false,
  plan: (spec, sampling) => {
    const { temperature, topK } = ofSamples(sampling);
    const { clipRatioLow, clipRatioHigh } = spec;
    return planOf(
      spec,
      { kind: 'gspo', temperature, topK, clipRatioLow, clipRatioHigh },
      { refills: spec.maxRefills },
    );
  },
  advantages: (groups) => perSample(groups, (reward, { mean, deviation }) => (reward - mean) / deviation),
};
