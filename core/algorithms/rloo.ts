import { z } from 'zod';
import { spread } from './method.ts';
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
  kind: z.literal('rloo'),
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
  offPolicy: true,
  plan: (spec, sampling) => planOf(spec, clippedObjective(spec, sampling), { refills: spec.maxRefills }),
  credit: (groups) =>
    groups.flatMap(({ samples }, group) => spread(group, samples, leaveOneOut(samples.map((s) => s.reward)))),
  refuse: refuseImportance,
};

function leaveOneOut(rewards: readonly (number | null)[]): (number | null)[] {
  const known = rewards.filter((reward) => reward !== null);
  const sum = known.reduce((a, b) => a + b, 0);
  const others = known.length - 1;
  return rewards.map((reward) =>
    reward === null ? null : others === 0 ? 0 : reward - (sum - reward) / others,
  );
}
