import { z } from 'zod';
import { fraction } from '../fields.ts';
import { standardized, standardizedTogether } from '../statistics/standardized.ts';
import type { Method } from './method.ts';
import type { Sample } from './sample.ts';
import { rewardedOf } from './sampled.ts';
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
 * Turn-level advantages by process rewards: what a verifier says of single turns is compared within the group, beside the
 * outcome. For all tokens of turn k
 *
 *   A_k = w A_outcome + (1 − w) Σ_{j ≥ k} γ^(j − k) r̃_j,   A_outcome as in GRPO, r̃ the standardized rewards of turns;
 *
 * standardized over all turns of the group (`group`; with w 0 that is process supervision of DeepSeekMath, Shao et al.
 * 2024, section 4.1.3), or over the samples' rewards of the same turn (`turn`, as in MT-GRPO, Zeng et al. 2025, arXiv
 * 2505.11821). The outcome keeps at least half.
 */
const schema = z.strictObject({
  kind: z.literal('process').describe('Advantages from the rewards of single turns, and from the outcome.'),
  over: z.enum(['group', 'turn']).default('group').describe('What the reward of a turn is compared with.'),
  outcomeShare: z
    .number()
    .min(0.5, 'must be at least 0.5: rewards of turns must not outweigh the outcome')
    .max(1)
    .default(0.5)
    .describe('Weight of the outcome; the rest is that of the turns.'),
  gamma: fraction.default(1).describe('Discount from turn to turn.'),
  ...clip,
  ...klToReference,
  ...entropyBonus,
  ...tokenMean,
  ...passes,
  ...importance,
});

export const process: Method<typeof schema> = {
  schema,
  perGroup: false,
  readsTurns: true,
  ignoresScale: () => true,
  offPolicy: true,
  plan: (spec, sampling) => planOf(spec, clippedObjective(spec, sampling)),
  advantages: (groups, { over, outcomeShare, gamma }) =>
    groups.flatMap((ofTask, group) => {
      const known = rewardedOf(ofTask);
      const outcomes = standardized(known.map(({ of }) => of.reward));
      const turns = comparedTurns(
        known.map(({ of }) => of),
        over,
      );
      return known.map(({ sample, of }, i) => ({
        group,
        sample,
        advantages: overTurns(
          of,
          discounted(turns[i]!, gamma).map((turn) => outcomeShare * outcomes[i]! + (1 - outcomeShare) * turn),
        ),
      }));
    }),
  refuse: (spec, context) =>
    context.turnRewards
      ? refuseImportance(spec, context)
      : [
          {
            field: 'kind',
            message: 'nothing pays single turns: give reward.rules { "kind": "process", "by": "turns", … }',
          },
        ],
};

/** Standardized rewards, one a turn, of each sample. */
function comparedTurns(samples: readonly Sample[], over: 'group' | 'turn'): number[][] {
  const rewards = samples.map(({ turns }) => turns.map(({ reward }) => reward));
  if (over === 'group') return standardizedTogether(rewards);
  const compared = rewards.map((ofTurns) => ofTurns.map(() => 0));
  // The first of its own turns is not the first of the episode where a sample branched off.
  const first = samples.map(({ before }) => before.length);
  const most = Math.max(0, ...rewards.map(({ length }, i) => first[i]! + length));
  for (let k = 0; k < most; k++) {
    const there = [...rewards.keys()].filter((i) => k >= first[i]! && k < first[i]! + rewards[i]!.length);
    const values = standardized(there.map((i) => rewards[i]![k - first[i]!]!));
    there.forEach((i, n) => (compared[i]![k - first[i]!] = values[n]!));
  }
  return compared;
}
