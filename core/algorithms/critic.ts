import { z } from 'zod';
import { amount, count, positive } from '../fields.ts';
import { standardizedTogether } from '../statistics/standardized.ts';
import type { TaskGroup } from './task-group.ts';
import type { SampleAdvantages } from './advantage.ts';
import type { Sample } from './sample.ts';
import type { Score } from './scores.ts';
import { atSampled, overCompletion, rewardedOf, sampledAt, scoreOf, tokenRewards } from './sampled.ts';

// What methods with a critic have in common: a network of its own that predicts, before each token, what is still to
// come. Values, rewards and advantages here are of the sampled tokens in a row [N]; after the last of them nothing comes,
// also where the episode was cut by a limit.

/** What a spec says of the network. */
export const criticShape = {
  learningRate: positive(1, 'Adam moves each weight by about that much')
    .default(1e-3)
    .describe('Of the critic; the policy has its own.'),
  valueClip: amount(1000, '0 leaves it out')
    .default(0.2)
    .describe('Clip of a value’s change from the one before the step, in units of reward; 0: no clip.'),
  pretrainingSteps: count(1e6, 'the policy would learn nothing', 0)
    .default(0)
    .describe('Steps at the beginning of the stage that train the critic alone.'),
};

export const criticFields = {
  klCoefficient: amount(100, 'lower it: the policy would follow the KL alone')
    .default(0)
    .describe('Weight of each token’s KL (k1) to the warm start in its reward; 0 leaves it out.'),
  whitenAdvantages: z
    .boolean()
    .default(true)
    .describe('Advantages are standardized over all sampled tokens of the batch.'),
  critic: z
    .strictObject(criticShape)
    .prefault({})
    .describe('A network of its own that predicts returns; the other settings of its Adam are the stage’s.'),
};

/** The scores that such a method asks for, beside others of its own. */
export const criticScores = ({ klCoefficient }: { klCoefficient: number }, more: Score[] = []): Score[] => [
  'values',
  ...more,
  ...(klCoefficient > 0 ? (['reference'] as const) : []),
];

/** Advantages and the critic's targets, of one sample's sampled tokens [N]. */
export interface ReturnEstimate {
  advantages: number[];
  returns: number[];
  /** What each advantage counts for in the gradient; absent: 1. */
  weights?: number[];
}

/** δ_t = r_t + γ V_{t+1} − V_t, A_t = δ_t + γ λ A_{t+1} (Schulman et al. 2016, eqs. 11 and 16). */
export function gae(
  rewards: readonly number[],
  values: readonly number[],
  gamma: number,
  lambda: number,
): number[] {
  const advantages = rewards.map(() => 0);
  let after = 0;
  for (let t = rewards.length - 1; t >= 0; t--) {
    after = rewards[t]! + gamma * (values[t + 1] ?? 0) - values[t]! + gamma * lambda * after;
    advantages[t] = after;
  }
  return advantages;
}

/**
 * What a method makes of rewards and values, for every sample that has a reward; whitened over the batch, if asked, and
 * then weighed: a mean that is taken off is a baseline, and a gradient without bias weighs it with the rest. `policyOf`
 * gives the log-probs [T] that the KL in the reward is of.
 */
export function fromCritic(
  groups: readonly TaskGroup[],
  { klCoefficient, whitenAdvantages }: { klCoefficient: number; whitenAdvantages: boolean },
  estimate: (rewards: number[], values: number[], sample: Sample) => ReturnEstimate,
  policyOf: (sample: Sample) => ArrayLike<number> = ({ samplerLogprobs }) => samplerLogprobs,
): SampleAdvantages[] {
  const estimates = groups.flatMap((ofTask, group) =>
    rewardedOf(ofTask).flatMap(({ sample, of }) => {
      const places = sampledAt(of);
      if (places.length === 0) return [];
      const values = atSampled(places, scoreOf(of, 'values'));
      const rewards = tokenRewards(of, klCoefficient, policyOf(of));
      return [{ group, sample, of, ...estimate(rewards, values, of) }];
    }),
  );
  const raw = estimates.map(({ advantages }) => advantages);
  const advantages = whitenAdvantages ? standardizedTogether(raw) : raw;
  return estimates.map(({ group, sample, of, returns, weights }, i) => ({
    group,
    sample,
    advantages: overCompletion(
      of,
      weights ? advantages[i]!.map((advantage, n) => weights[n]! * advantage) : advantages[i]!,
    ),
    returns: overCompletion(of, returns),
  }));
}

export const plus = (a: readonly number[], b: readonly number[]): number[] =>
  a.map((value, i) => value + b[i]!);
