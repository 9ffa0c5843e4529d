import type { TaskGroup } from './task-group.ts';
import type { Sample } from './sample.ts';

// A sample as its sampled tokens in a row. What follows the last token of a turn is the first token of
// the next one; observations are part of the state, and nobody acts in them.

/** A sample that has a reward. */
export type Rewarded = Sample & { reward: number };

const isRewarded = (sample: Sample): sample is Rewarded => sample.reward !== null;

/** The samples of a group that act on something, each with its place in the group. */
export const rewardedOf = ({ samples }: Pick<TaskGroup, 'samples'>): { sample: number; of: Rewarded }[] =>
  samples.flatMap((of, sample) => (isRewarded(of) ? [{ sample, of }] : []));

/** Places of the sampled tokens [N] in a completion, in order. */
export function sampledAt({ mask }: Pick<Sample, 'mask'>): number[] {
  const places: number[] = [];
  mask.forEach((bit, at) => bit === 1 && places.push(at));
  return places;
}

/** Of the sampled tokens [N], what `perToken` [T] says. */
export const atSampled = (places: readonly number[], perToken: ArrayLike<number>): number[] =>
  places.map((at) => perToken[at]!);

/** The way back [T]: 0 where nothing was sampled. */
export function overCompletion({ mask }: Pick<Sample, 'mask'>, values: readonly number[]): number[] {
  let next = 0;
  return mask.map((bit) => (bit === 1 ? values[next++]! : 0));
}

/** What the plan had scored [T]. Throws RangeError where it has not. */
export function scoreOf({ scores }: Sample, name: keyof Sample['scores']): ArrayLike<number> {
  const values = scores[name];
  if (!values) throw new RangeError(`the method needs ${name}, and these were not scored`);
  return values;
}

/**
 * Rewards of the sampled tokens [N]: −β k1 of each, k1 = log π(a) − log π_ref(a) under `policy` [T], the one that sampled
 * unless another is given (Ziegler et al. 2019, eq. 2), a turn's own reward at its last token, and the outcome at the last
 * of all.
 */
export function tokenRewards(
  sample: Rewarded,
  klCoefficient: number,
  policy: ArrayLike<number> = sample.samplerLogprobs,
): number[] {
  const places = sampledAt(sample);
  const rewards = places.map(() => 0);
  if (klCoefficient !== 0) {
    const reference = scoreOf(sample, 'reference');
    places.forEach((at, n) => (rewards[n] = -klCoefficient * (policy[at]! - reference[at]!)));
  }
  for (const { end, reward } of sample.turns) {
    const last = places.indexOf(end - 1);
    if (reward !== 0) rewards[last]! += reward;
  }
  if (rewards.length > 0) rewards[rewards.length - 1]! += sample.reward;
  return rewards;
}
