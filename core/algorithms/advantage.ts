import { centered, deviationOf, isRounding, standardized } from '../statistics/standardized.ts';

/** A group's advantages, aligned with its rewards; null where an episode stays out of statistics and loss. */
export interface GroupAdvantages {
  advantages: (number | null)[];
  /** Standard deviation of the rewards; 0 for fewer than two. */
  deviation: number;
  /** Fewer than two rewards, or all of them equal: the group teaches nothing. */
  degenerate: boolean;
}

/**
 * GRPO's group-relative advantage (Shao et al. 2024, section 4.1.2): (r − mean) / deviation over the rewards of one
 * task's samples; `none` leaves the division out, as Dr. GRPO does (Liu et al. 2025), whose other half is the aggregation
 * `dr-grpo`. Rewards that are null (pending, abstained, failed by infrastructure) enter neither mean nor deviation, so they
 * never act as a zero.
 */
export function groupAdvantages(
  rewards: readonly (number | null)[],
  scale: 'group' | 'none',
): GroupAdvantages {
  const known = rewards.filter((reward) => reward !== null);
  const deviation = deviationOf(known);
  const degenerate = isRounding(deviation);
  const ofKnown = degenerate ? known.map(() => 0) : (scale === 'group' ? standardized : centered)(known);
  let next = 0;
  const advantages = rewards.map((reward) => (reward === null ? null : ofKnown[next++]!));
  return { advantages, deviation, degenerate };
}
