import {
  clip,
  clippedObjective,
  defineMethod,
  entropyBonus,
  importance,
  klToReference,
  median,
  overSamples,
  passes,
  planOf,
  refills,
  tokenMean,
  z,
} from '../extend.ts';

/**
 * A method of one's own: the baseline of a sample is the median reward of its group, which one lucky sample does not move.
 * A_i = scale · (r_i − median r), the same for every sampled token; the loss is the clipped ratio of GRPO.
 */
export default defineMethod({
  name: 'median-baseline',
  options: z.strictObject({
    scale: z.number().positive().max(100).default(1).describe('Advantages are multiplied by it.'),
    ...clip,
    ...klToReference,
    ...entropyBonus,
    ...tokenMean,
    ...passes,
    ...importance,
    ...refills,
  }),
  perGroup: true,
  offPolicy: false,
  readsTurns: false,
  plan: (options, sampling) =>
    planOf(options, clippedObjective(options, sampling), { refills: options.maxRefills }),
  advantages: (groups, { scale }) =>
    groups.flatMap(({ samples }, group) => {
      const rewards = samples.map(({ reward }) => reward);
      const known = rewards.filter((reward) => reward !== null);
      const middle = known.length === 0 ? 0 : median(known);
      // A sample without a reward is left out, and never counts as a zero.
      const advantages = rewards.map((reward) => (reward === null ? null : scale * (reward - middle)));
      return overSamples(group, samples, advantages);
    }),
});
