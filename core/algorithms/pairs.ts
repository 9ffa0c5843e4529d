import { isRounding } from '../statistics/standardized.ts';

/**
 * The best with the worst, the second best with the second worst, and so inwards, while they differ by more than `margin`
 * (a difference of rounding is none): those that differ most first, each in one pair at most. Of equal ones the earlier
 * counts as the better.
 */
export function pairsInwards<T extends { worth: number }>(
  all: readonly T[],
  margin: number,
): { better: T; worse: T; gap: number }[] {
  const ranked = all.toSorted((a, b) => b.worth - a.worth);
  const pairs: { better: T; worse: T; gap: number }[] = [];
  for (let n = 0; 2 * n + 1 < ranked.length; n++) {
    const [better, worse] = [ranked[n]!, ranked[ranked.length - 1 - n]!];
    const gap = better.worth - worse.worth;
    if (!(gap > margin) || isRounding(gap - margin)) break;
    pairs.push({ better, worse, gap });
  }
  return pairs;
}
