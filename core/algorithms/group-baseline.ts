import { deviationOf } from '../statistics/standardized.ts';
import { groupAdvantages } from './advantage.ts';
import { spread } from './method.ts';
import type { CreditGroup, Lesson } from './method.ts';
import { rewardedOf } from './sampled.ts';

/** Group-relative advantages, as GRPO has them, for all sampled tokens of each sample. */
export const groupRelative = (groups: readonly CreditGroup[], scale: 'group' | 'none'): Lesson[] =>
  groups.flatMap(({ samples }, group) =>
    spread(
      group,
      samples,
      groupAdvantages(
        samples.map(({ reward }) => reward),
        scale,
      ).advantages,
    ),
  );

/** Two rewards or more, and not all of them equal: only such a group tells samples apart. */
export const tellsApart = ({ samples }: CreditGroup): boolean =>
  !groupAdvantages(
    samples.map(({ reward }) => reward),
    'none',
  ).degenerate;

/** Places of the share `keep` of the groups, rounded down but one at least, whose rewards deviate most; of equal ones the earlier. */
export function mostDeviating(groups: readonly CreditGroup[], keep: number): Set<number> {
  const deviations = groups.map((group) => deviationOf(rewardedOf(group).map(({ of }) => of.reward)));
  const ranked = [...groups.keys()].toSorted((a, b) => deviations[b]! - deviations[a]! || a - b);
  // 0.58 · 50 is a hair below 29 in doubles.
  return new Set(ranked.slice(0, Math.max(1, Math.floor(keep * groups.length + 1e-9))));
}
