import { z } from 'zod';
import { overSamples } from './advantage.ts';
import type { Method } from './method.ts';
import {
  entropyBonus,
  importance,
  importanceCorrection,
  MOST_EPISODES,
  ofSamples,
  passes,
  planOf,
  refuseImportance,
  tokenMean,
} from './surrogate.ts';

/**
 * ReMax (Li et al. 2023, arXiv 2310.10505, eq. 4 and algorithm 1):
 *
 *   A_i = r_i − r(greedy)   the reward of one more sample of the task, of the likeliest token each time;
 *   loss: −A log π, summed over a sample's tokens.
 *
 * A task whose greedy sample has no reward (it failed, or waits for a verdict) is left out: it has no baseline.
 */
const schema = z.strictObject({
  kind: z
    .literal('remax')
    .describe('The baseline of a sample is the reward of a greedy one (Li et al. 2023).'),
  ...entropyBonus,
  aggregation: tokenMean.aggregation.default('dr-grpo'),
  // One update a step: without a ratio to the old policy further ones would go on as if nothing had moved.
  minibatch: passes.minibatch.default(MOST_EPISODES),
  ...importance,
});

export const remax: Method<typeof schema> = {
  schema,
  perGroup: false,
  readsTurns: false,
  branches: true,
  offPolicy: false,
  // The greedy sample is of the weights that have sampled the others.
  lags: true,
  plan: (spec, sampling) => {
    const { entropyBonus: bonus, aggregation, minibatch } = spec;
    return planOf(
      { minibatch, numIterations: 1 },
      {
        kind: 'reinforce',
        ...ofSamples(sampling),
        aggregation,
        ...importanceCorrection(spec),
        entropyBonus: bonus,
      },
      { greedy: true },
    );
  },
  advantages: (groups) =>
    groups.flatMap(({ samples, greedy }, group) =>
      greedy === undefined
        ? []
        : overSamples(
            group,
            samples,
            samples.map(({ reward }) => (reward === null ? null : reward - greedy)),
          ),
    ),
  refuse: refuseImportance,
};
