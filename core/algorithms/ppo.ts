import { z } from 'zod';
import { fraction } from '../fields.ts';
import { criticFields, criticScores, fromCritic, gae, plus } from './critic.ts';
import type { Method } from './method.ts';
import type { Sample } from './sample.ts';
import { sampledAt } from './sampled.ts';
import {
  clip,
  clippedObjective,
  entropyBonus,
  importance,
  passes,
  planOf,
  refuseImportance,
  tokenMean,
} from './surrogate.ts';

/**
 * PPO, proximal policy optimization (Schulman et al. 2017, arXiv 1707.06347, eqs. 7, 9, 11 and 12) over the sampled tokens
 * of a trajectory, the per-token KL in the reward (Ziegler et al. 2019):
 *
 *   r_t = −β_kl k1_t, a turn's own reward at its last token, the outcome at the last token of all;
 *   A = GAE(γ, λ) of r and the critic's V, returns A + V;
 *   loss: the clipped ratio, less `entropyBonus` times the entropy; of the critic: half the larger of the clipped and
 *   the plain squared error.
 *
 * With `turns` the advantage is bi-level (Wang et al. 2025, VAGEN, arXiv 2510.16907): from turn to turn by its own γ and
 * λ, with the value at each turn's last token, and within a turn, from what its last token was given, by `gamma`, `lambda`.
 */
const schema = z.strictObject({
  kind: z.literal('ppo').describe('Advantages by a critic and GAE (Schulman et al. 2017).'),
  gamma: fraction.default(1).describe('Discount from token to token.'),
  lambda: fraction.default(0.95).describe('Of GAE, from token to token.'),
  turns: z
    .strictObject({
      gamma: fraction.default(1).describe('Discount from turn to turn.'),
      lambda: fraction.default(1).describe('Of GAE, from turn to turn.'),
    })
    .optional()
    .describe('Discount and λ from turn to turn (bi-level GAE); absent: only from token to token.'),
  ...criticFields,
  ...clip,
  clipRatioHigh: clip.clipRatioHigh.default(0.2),
  ...entropyBonus,
  ...tokenMean,
  ...passes,
  ...importance,
});

export const ppo: Method<typeof schema> = {
  schema,
  perGroup: false,
  readsTurns: true,
  offPolicy: false,
  plan: (spec, sampling) =>
    planOf(spec, clippedObjective(spec, sampling), {
      critic: spec.critic,
      contrast: 'step',
      scores: criticScores(spec),
    }),
  advantages: (groups, spec) =>
    fromCritic(groups, spec, (rewards, values, sample) => {
      const advantages = spec.turns
        ? biLevel(rewards, values, sample, { token: spec, turn: spec.turns })
        : gae(rewards, values, spec.gamma, spec.lambda);
      return { advantages, returns: plus(advantages, values) };
    }),
  refuse: refuseImportance,
};

interface Discount {
  gamma: number;
  lambda: number;
}

function biLevel(
  rewards: readonly number[],
  values: readonly number[],
  sample: Sample,
  { token, turn }: { token: Discount; turn: Discount },
): number[] {
  const places = sampledAt(sample);
  const advantages = rewards.map(() => 0);
  let [valueAfter, advantageAfter] = [0, 0];
  for (const { start, end } of sample.turns.toReversed()) {
    const [first, last] = [places.indexOf(start), places.indexOf(end - 1)];
    const delta = rewards[last]! + turn.gamma * valueAfter - values[last]!;
    advantages[last] = delta + turn.gamma * turn.lambda * advantageAfter;
    [valueAfter, advantageAfter] = [values[last]!, advantages[last]];
    for (let t = last - 1; t >= first; t--) {
      const step = rewards[t]! + token.gamma * values[t + 1]! - values[t]!;
      advantages[t] = step + token.gamma * token.lambda * advantages[t + 1]!;
    }
  }
  return advantages;
}
