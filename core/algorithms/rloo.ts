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
 * RLOO, REINFORCE leave-one-out (Ahmadian et al. 2024, arXiv 2402.14740, eq. 8; Kool et al. 2019):
 *
 *   A_i = r_i − mean of the other samples' rewards   over the samples of one task; 0 where there are no others;
 *   loss: −A log π. In the first update of a step the clipped ratio has the same gradient; later ones are kept near.
 *
 * A sample is one action, so the loss sums over its tokens: `aggregation` is `dr-grpo` where the spec says nothing.
 */
const schema = z.strictObject({
  kind: z
    .literal('rloo')
    .describe('The baseline of a sample is the mean of the others (Ahmadian et al. 2024).'),
  ...clip,
  ...klToReference,
  ...entropyBonus,
  aggregation: tokenMean.aggregation.default('dr-grpo'),
  ...passes,
  ...importance,
  ...refills,
});

export const rloo: Method<typeof schema> = {
  schema,
  perGroup: true,
  readsTurns: false,
  branches: true,
  offPolicy: true,
  plan: (spec, sampling) => planOf(spec, clippedObjective(spec, sampling), { refills: spec.maxRefills }),
  // r − mean of the others is n / (n − 1) times r − mean of all.
  advantages: (groups) =>
    perSample(groups, (reward, { mean, count }) => ((reward - mean) * count) / (count - 1)),
  refuse: refuseImportance,
};
