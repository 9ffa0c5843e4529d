import { deviationOf, isRounding, meanOf } from '../statistics/standardized.ts';
import type { Sample } from './sample.ts';
import type { TaskGroup } from './task-group.ts';

/** What a method makes of a sample: how much more, or less, its tokens are to be sampled. */
export interface SampleAdvantages {
  /** Places of the group among those that the method was given, and of the sample in it. */
  group: number;
  sample: number;
  /** Per token of the completion [T], 0 where the mask is. */
  advantages: number[];
  /** Part of the sample's mask: the tokens that the advantages are about. Absent: all of it. */
  mask?: (0 | 1)[];
  /** What the critic is to predict, likewise. */
  returns?: number[];
  /** Two of one number are the two of a preference. */
  pair?: number;
  /** 1: preferred, or desirable; −1: the other; 0: neither, but what the others are compared with. */
  label?: 1 | -1 | 0;
  /** The completion stands after the prompt of this group, not of its own. */
  promptOf?: number;
  /** Place of the only teacher that it is learnt from; absent: all of them, by weight. */
  teacher?: number;
}

/** Of the rewards of a group's samples, without those that are null: they never act as a zero. */
export interface GroupStatistics {
  count: number;
  mean: number;
  /** The sample's standard deviation, with n − 1; 0 for fewer than two. */
  deviation: number;
  /** Fewer than two rewards, or all of them equal: nothing tells the samples apart. */
  degenerate: boolean;
}

export function groupStatistics(rewards: readonly (number | null)[]): GroupStatistics {
  const known = rewards.filter((reward) => reward !== null);
  const deviation = deviationOf(known);
  return { count: known.length, mean: meanOf(known), deviation, degenerate: isRounding(deviation) };
}

/**
 * One advantage for all sampled tokens of each sample, by its reward and those of its group. It is 0 in a degenerate group;
 * a sample without a reward is left out.
 */
export const perSample = (
  groups: readonly TaskGroup[],
  advantage: (reward: number, group: GroupStatistics) => number,
): SampleAdvantages[] =>
  groups.flatMap(({ samples }, place) => {
    const group = groupStatistics(samples.map(({ reward }) => reward));
    const of = (reward: number) => (group.degenerate ? 0 : advantage(reward, group));
    return overSamples(
      place,
      samples,
      samples.map(({ reward }) => (reward === null ? null : of(reward))),
    );
  });

/** One advantage for all sampled tokens of each sample; null leaves a sample out. */
export const overSamples = (
  group: number,
  samples: readonly Sample[],
  advantages: readonly (number | null)[],
): SampleAdvantages[] =>
  samples.flatMap(({ mask }, sample) => {
    const advantage = advantages[sample] ?? null;
    return advantage === null ? [] : [{ group, sample, advantages: mask.map((bit) => bit * advantage) }];
  });

/** Below it an advantage is one of rounding. */
export const ROUNDING = 1e-9;

/** Whether they move the policy, or its critic. */
export const isMoving = ({ advantages, returns }: SampleAdvantages): boolean =>
  returns !== undefined || advantages.some((advantage) => Math.abs(advantage) > ROUNDING);
