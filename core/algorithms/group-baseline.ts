import { deviationOf, isRounding } from '../statistics/standardized.ts';
import { groupStatistics } from './advantage.ts';
import type { TaskGroup } from './task-group.ts';
import type { Sample } from './sample.ts';
import { rewardedOf } from './sampled.ts';

/** Two rewards or more, and not all of them equal: only such a group tells samples apart. */
export const rewardsDiffer = ({ samples }: TaskGroup): boolean =>
  !groupStatistics(samples.map(({ reward }) => reward)).degenerate;

/** Some, and not all, of the samples that have a reward are successes. */
export function mixesSuccess({
  samples,
}: {
  samples: readonly Pick<Sample, 'reward' | 'success'>[];
}): boolean {
  const known = samples.filter(({ reward }) => reward !== null).map(({ success }) => success);
  return known.includes(true) && known.includes(false);
}

/**
 * Places of the share `keep` of the groups, rounded down but one at least, whose rewards deviate most; of equal ones the
 * earlier. A group with fewer than two rewards has no deviation: it is neither ranked nor counted. A share of 1 keeps all.
 */
export function mostDeviating(groups: readonly TaskGroup[], keep: number): Set<number> {
  if (keep >= 1) return new Set(groups.keys());
  const ranked = groups
    .map((group, at) => ({ at, rewards: rewardedOf(group).map(({ of }) => of.reward) }))
    .filter(({ rewards }) => rewards.length > 1)
    .map(({ at, rewards }) => ({ at, deviation: deviationOf(rewards) }))
    .toSorted((a, b) => (isRounding(Math.abs(b.deviation - a.deviation)) ? 0 : b.deviation - a.deviation));
  // 0.58 · 50 is a hair below 29 in doubles.
  const share = Math.max(1, Math.floor(keep * ranked.length + 1e-9));
  return new Set(ranked.slice(0, share).map(({ at }) => at));
}
