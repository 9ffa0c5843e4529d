/** A group's advantages, aligned with its rewards; null where an episode stays out of statistics and loss. */
export interface GroupAdvantages {
  advantages: (number | null)[];
  mean: number;
  deviation: number;
  /** Fewer than two rewards, or all of them equal: the group teaches nothing. */
  degenerate: boolean;
}

const SMALLEST_DEVIATION = 1e-8;

/**
 * GRPO's group-relative advantage (Shao et al. 2024, section 4.1.2): (r − mean) / deviation over the rewards of one
 * task's samples; `none` leaves the division out, as Dr. GRPO does (Liu et al. 2025), whose other half is the aggregation `dr-grpo`. Rewards that are null (pending,
 * abstained, failed by infrastructure) enter neither mean nor deviation, so they never act as a zero.
 */
export function groupAdvantages(
  rewards: readonly (number | null)[],
  scale: 'group' | 'none',
): GroupAdvantages {
  const known = rewards.filter((reward): reward is number => reward !== null);
  const mean = known.length === 0 ? 0 : known.reduce((a, b) => a + b, 0) / known.length;
  const variance =
    known.length < 2 ? 0 : known.reduce((sum, r) => sum + (r - mean) ** 2, 0) / (known.length - 1);
  const deviation = Math.sqrt(variance);
  const degenerate = deviation < SMALLEST_DEVIATION;
  const divisor = scale === 'group' ? deviation : 1;
  const advantages = rewards.map((reward) =>
    reward === null ? null : degenerate ? 0 : (reward - mean) / divisor,
  );
  return { advantages, mean, deviation, degenerate };
}
