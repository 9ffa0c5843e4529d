import { z } from 'zod';
import { amount, decay } from '../fields.ts';
import { groupBy } from '../group-by.ts';
import { armName } from '../names.ts';
import { centered, standardizedTogether } from '../statistics/standardized.ts';
import type { TaskGroup } from './task-group.ts';
import type { Method } from './method.ts';
import { baselinesOf, movedMeans, USUAL_DECAY } from './moving-means.ts';
import type { Earned, MovingMeans } from './moving-means.ts';
import { overCompletion, rewardedOf, sampledAt, tokenRewards } from './sampled.ts';
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
 * REINFORCE++ (Hu 2025, arXiv 2501.03262), PPO without a critic:
 *
 *   baseline `none`:  r_t = −β_kl k1_t, and the outcome at the last token; A_t = Σ_{s ≥ t} r_s;
 *   baseline `group`: A_t = r − mean r over the samples of one task (REINFORCE++-baseline; its KL, k2, is in the loss, `beta`);
 *   either way standardized over all sampled tokens of the batch; loss: the clipped ratio, mean over all tokens.
 *
 *   baseline `level`: A_t = (r − mean r) / std r over all sampled tokens of one environment and level, so that a longer sample
 *   counts for more: task-relative REINFORCE++ (Zhao et al. 2025, arXiv 2505.03335, eq. 8). In self-play each role and kind
 *   of task has a level, and so its own baseline.
 *
 *   baseline `moving`: A_t = r − m, not standardized, where m is the moving mean of the rewards of earlier steps at that level:
 *   role-conditioned advantages (Liu et al. 2025, arXiv 2506.24119). A step moves m after it was compared with it.
 */
const schema = z.strictObject({
  kind: z.literal('reinforce++').describe('Advantages are standardized over the whole batch (Hu 2025).'),
  baseline: z
    .enum(['none', 'group', 'level', 'moving'])
    .default('group')
    .describe(
      'What a reward is compared with. none: all of the batch. group: its own group, and then all. level: all of the step at its level, in self-play its role and kind of task, as in Absolute Zero. moving: what earlier steps earned at that level, as in SPIRAL.',
    ),
  baselineDecay: decay
    .optional()
    .describe(
      `For baseline moving: what one sample more leaves of the mean before it. Absent: ${USUAL_DECAY}.`,
    ),
  klCoefficient: amount(100, 'lower it: the policy would follow the KL alone')
    .default(0)
    .describe('Weight of each token’s KL (k1) to the reference in its reward; for baseline none.'),
  ...clip,
  clipRatioHigh: clip.clipRatioHigh.default(0.2),
  beta: amount(100, 'lower it: the policy would follow the KL alone')
    .default(0)
    .describe('Weight of the KL to the warm start in the loss; 0 leaves it out.'),
  klEstimator: z
    .enum(['k2', 'k3'])
    .default('k2')
    .describe(
      'Of that KL, by d = log π − log π_ref. k2: d² / 2, whose gradient is that of the KL on samples of the policy. k3: exp(−d) + d − 1, as GRPO has it.',
    ),
  ...entropyBonus,
  ...passes,
  ...importance,
});

export const reinforcePlusPlus: Method<typeof schema> = {
  schema,
  perGroup: false,
  readsTurns: true,
  offPolicy: true,
  plan: (spec, sampling) =>
    planOf(spec, clippedObjective({ ...spec, aggregation: 'token' }, sampling), {
      scores: spec.klCoefficient > 0 ? ['reference'] : [],
      ...(spec.baseline !== 'group' && { contrast: spec.baseline === 'moving' ? 'none' : 'step' }),
    }),
  advantages: (groups, { baseline, klCoefficient }, before = {}) => {
    const shaped = groups.flatMap((group, g) =>
      (baseline === 'group' ? fromGroup(group) : fromRewards(group, klCoefficient)).map((one) => ({
        group: g,
        ...one,
      })),
    );
    const advantages =
      baseline === 'moving'
        ? lessMovingMeans(shaped, groups, before)
        : baseline === 'level'
          ? standardizedByLevel(shaped, groups)
          : standardizedTogether(shaped.map(({ values }) => values));
    return shaped.map(({ group, sample }, i) => ({
      group,
      sample,
      advantages: overCompletion(groups[group]!.samples[sample]!, advantages[i]!),
    }));
  },
  movingMeans: (groups, { baseline, baselineDecay = USUAL_DECAY }, before = {}) =>
    baseline === 'moving' ? movedMeans(earnedIn(groups), before, baselineDecay) : undefined,
  refuse: (spec, context) => [
    ...refuseImportance(spec, context),
    ...(spec.baseline !== 'none' && spec.klCoefficient > 0
      ? [
          {
            field: 'klCoefficient',
            message: `does nothing with baseline ${spec.baseline}: give beta, or baseline none`,
          },
        ]
      : []),
    ...(spec.baseline !== 'moving' && spec.baselineDecay !== undefined
      ? [
          {
            field: 'baselineDecay',
            message: `does nothing with baseline ${spec.baseline}: leave it out, or take moving`,
          },
        ]
      : []),
    ...(spec.baseline === 'moving' && context.replays
      ? [
          {
            field: 'baseline',
            message: 'moving would count rewards of replayed groups again: take level, or leave out collect',
          },
        ]
      : []),
    ...(spec.klEstimator === 'k3' && spec.beta === 0
      ? [{ field: 'klEstimator', message: 'does nothing where beta is 0: give beta, or leave it out' }]
      : []),
    ...((context.stored || context.lags !== null) && spec.klCoefficient > 0
      ? [
          {
            field: 'klCoefficient',
            message:
              'is of the KL of the policy that sampled, which is another here: set it to 0, and beta in its place',
          },
        ]
      : []),
  ],
};

/** Per sampled token. */
interface Shaped {
  sample: number;
  values: number[];
}

/** In place of one baseline for all: what is easy at one level is not at another. */
function standardizedByLevel(
  shaped: readonly { group: number; values: number[] }[],
  groups: readonly TaskGroup[],
): number[][] {
  const advantages: number[][] = [];
  const byLevel = groupBy([...shaped.entries()], ([, { group }]) => armName(groups[group]!.ref));
  for (const own of byLevel.values()) {
    const standardized = standardizedTogether(own.map(([, { values }]) => values));
    own.forEach(([at], i) => (advantages[at] = standardized[i]!));
  }
  return advantages;
}

/** What a sample of an easy level earns says nothing of a hard one; nor does what others earn now, of what was usual. */
function lessMovingMeans(
  shaped: readonly { group: number; values: number[] }[],
  groups: readonly TaskGroup[],
  before: MovingMeans,
): number[][] {
  const baselines = baselinesOf(earnedIn(groups), before);
  return shaped.map(({ group, values }) => {
    const baseline = baselines[armName(groups[group]!.ref)]!;
    return values.map((value) => value - baseline);
  });
}

const earnedIn = (groups: readonly TaskGroup[]): Earned[] =>
  groups.flatMap((group) =>
    rewardedOf(group).map(({ of }) => ({ arm: armName(group.ref), reward: of.reward })),
  );

function fromGroup(group: TaskGroup): Shaped[] {
  const known = rewardedOf(group);
  const advantages = centered(known.map(({ of }) => of.reward));
  return known.map(({ sample, of }, i) => ({ sample, values: sampledAt(of).map(() => advantages[i]!) }));
}

const fromRewards = (group: TaskGroup, klCoefficient: number): Shaped[] =>
  rewardedOf(group).map(({ sample, of }) => {
    const values = tokenRewards(of, klCoefficient);
    for (let t = values.length - 2; t >= 0; t--) values[t]! += values[t + 1]!;
    return { sample, values };
  });
