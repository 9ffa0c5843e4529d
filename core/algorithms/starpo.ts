import { z } from 'zod';
import { fraction, positive } from '../fields.ts';
import { criticFields, criticScores, fromCritic, gae, plus } from './critic.ts';
import { mostDeviating } from './group-baseline.ts';
import type { Method } from './method.ts';
import {
  clip,
  clippedObjective,
  entropyBonus,
  importance,
  passes,
  planOf,
  refuseImportance,
} from './surrogate.ts';

/**
 * StarPO-S (Wang et al. 2025, RAGEN, arXiv 2504.20073, section 3.3): whole trajectories are optimized by PPO, with what
 * keeps multi-turn training from the echo trap:
 *
 *   only the share `keepGroups` of the groups whose rewards deviate most is learnt from;
 *   a critic is the baseline, advantages are GAE(γ, λ) over the sampled tokens;
 *   loss: the clip is decoupled (high > low), without a KL.
 *
 * StarPO without S is optimized by critic-free GRPO or by PPO in the paper: `grpo` or `ppo`, each with equal clips.
 */
const schema = z.strictObject({
  kind: z.literal('starpo-s').describe('PPO on the groups whose rewards vary most (Wang et al. 2025).'),
  keepGroups: positive(1, 'that keeps all')
    .default(0.5)
    .describe(
      'Share of the groups that is trained on: those whose rewards deviate most; rounded down, but at least one. Groups with fewer than two rewards are not counted.',
    ),
  gamma: fraction.default(1).describe('Discount from token to token.'),
  lambda: fraction.default(1).describe('Of GAE, from token to token.'),
  ...criticFields,
  ...clip,
  ...entropyBonus,
  ...passes,
  ...importance,
});

export const starpo: Method<typeof schema> = {
  schema,
  perGroup: false,
  readsTurns: true,
  offPolicy: false,
  plan: (spec, sampling) =>
    planOf(spec, clippedObjective({ ...spec, aggregation: 'token' }, sampling), {
      critic: spec.critic,
      scores: criticScores(spec),
    }),
  advantages: (groups, spec) => {
    const kept = mostDeviating(groups, spec.keepGroups);
    return fromCritic(
      groups.map((group, g) => (kept.has(g) ? group : { ...group, samples: [] })),
      spec,
      (rewards, values) => {
        const advantages = gae(rewards, values, spec.gamma, spec.lambda);
        return { advantages, returns: plus(advantages, values) };
      },
    );
  },
  refuse: refuseImportance,
};
