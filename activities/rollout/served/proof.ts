/** How a server's log-probs of the fixed sequence stand to the learner's, under the new weights and those before. */
export interface ProbeComparison {
  /** Mean |server − learner|, nats. */
  gap: number;
  /**
   * Where the server stands between the new weights (0) and those before (1), by least squares, and the standard error of
   * it. null where nothing is known of those before, or both say the same.
   */
  towardsOld: { at: number; error: number } | null;
}

/** [T − 1] each: of the server, and of the learner under the new weights and those before. */
export function compareProbe(
  served: readonly number[],
  now: readonly number[],
  before: readonly number[] | null,
): ProbeComparison {
  const off = served.map((value, i) => value - now[i]!);
  const gap = off.reduce((sum, value) => sum + Math.abs(value), 0) / Math.max(1, off.length);
  if (before === null || before.length !== now.length) return { gap, towardsOld: null };
  const step = before.map((value, i) => value - now[i]!);
  const size = step.reduce((sum, value) => sum + value * value, 0);
  if (size === 0) return { gap, towardsOld: null };
  const at = off.reduce((sum, value, i) => sum + value * step[i]!, 0) / size;
  const rest = off.reduce((sum, value, i) => sum + (value - at * step[i]!) ** 2, 0);
  const error = Math.sqrt(rest / Math.max(1, off.length - 1) / size);
  return { gap, towardsOld: { at, error } };
}

/** With more rounding than this the two cannot be told apart: an update of almost nothing. */
const TELLS_APART = 0.125;

/** Why these are not the new weights; null where nothing speaks against it. */
export function whyNotNew({ gap, towardsOld }: ProbeComparison, tolerance: number): string | null {
  if (!(gap <= tolerance))
    return `its log-probs of the fixed sequence are ${gap.toPrecision(3)} nats from the learner's, with a tolerance of ${tolerance}`;
  if (towardsOld !== null && towardsOld.error <= TELLS_APART && towardsOld.at > 0.5)
    return `its log-probs of the fixed sequence are those of the weights before`;
  return null;
}
