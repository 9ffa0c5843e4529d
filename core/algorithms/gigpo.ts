import { z } from 'zod';
import { amount, fraction } from '../fields.ts';
import { centered, standardized } from '../statistics/standardized.ts';
import type { Method } from './method.ts';
import type { Sample } from './sample.ts';
import { rewardedOf } from './sampled.ts';
import type { Rewarded } from './sampled.ts';
import {
  clip,
  clippedObjective,
  entropyBonus,
  importance,
  klToReference,
  passes,
  planOf,
  refuseImportance,
  tokenMean,
} from './surrogate.ts';
import { discounted, overTurns } from './turns.ts';

/**
 * GiGPO, group-in-group policy optimization (Feng et al. 2025, arXiv 2505.10978, eqs. 3 and 5 to 8):
 *
 *   A = A_episode + ω A_step for all tokens of a turn;
 *   A_episode compares the sums of rewards of a task's samples;
 *   A_step compares, among all turns of the task's samples that begin in the same state, the rewards from that turn on,
 *   discounted by γ from turn to turn. The state is what the policy saw last: the prompt, or the last observation.
 */
const schema = z.strictObject({
  kind: z
    .literal('gigpo')
    .describe('Groups of episodes, and groups of turns from the same state (Feng et al. 2025).'),
  omega: amount(100, 'episodes would count for nothing')
    .default(1)
    .describe('Weight of the turns’ advantage.'),
  gamma: fraction.default(0.95).describe('Discount from turn to turn.'),
  scaleRewards: z
    .enum(['group', 'none'])
    .default('group')
    .describe('Divide by the deviation of each group, of episodes and of turns, or not.'),
  ...clip,
  ...klToReference,
  ...entropyBonus,
  ...tokenMean,
  ...passes,
  ...importance,
});

export const gigpo: Method<typeof schema> = {
  schema,
  perGroup: false,
  readsTurns: true,
  offPolicy: true,
  plan: (spec, sampling) => planOf(spec, clippedObjective(spec, sampling)),
  advantages: (groups, { omega, gamma, scaleRewards }) => {
    const scaled = scaleRewards === 'group' ? standardized : centered;
    return groups.flatMap((ofTask, group) => {
      const known = rewardedOf(ofTask);
      const rewards = known.map(({ of }) => turnRewards(of));
      const episodes = scaled(
        known.map(({ of: { before } }, i) =>
          [...before.map(({ reward }) => reward), ...rewards[i]!].reduce((a, b) => a + b, 0),
        ),
      );
      const after = rewards.map((ofTurns) => discounted(ofTurns, gamma));
      const steps = rewards.map((ofTurns) => ofTurns.map(() => 0));
      for (const places of sameStates(known.map(({ of }) => of)).values()) {
        const advantages = scaled(places.map(([i, k]) => after[i]![k]!));
        places.forEach(([i, k], n) => (steps[i]![k] = advantages[n]!));
      }
      return known.map(({ sample, of }, i) => ({
        group,
        sample,
        advantages: overTurns(
          of,
          steps[i]!.map((step) => episodes[i]! + omega * step),
        ),
      }));
    });
  },
  refuse: refuseImportance,
};

/** One a turn: its own, and the outcome at the last. */
function turnRewards({ turns, reward }: Rewarded): number[] {
  const rewards = turns.map((turn) => turn.reward);
  if (rewards.length > 0) rewards[rewards.length - 1]! += reward;
  return rewards;
}

/** Places (sample, turn) of the turns that begin in the same state. */
function sameStates(samples: readonly Sample[]): Map<string, [number, number][]> {
  const places = new Map<string, [number, number][]>();
  samples.forEach(({ turns }, i) =>
    turns.forEach(({ state }, k) => {
      const same = places.get(state);
      if (same) same.push([i, k]);
      else places.set(state, [[i, k]]);
    }),
  );
  return places;
}
