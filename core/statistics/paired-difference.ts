import { normalQuantile } from './intervals.ts';
import type { Mean } from './intervals.ts';

/**
 * The mean of differences of two shares over tasks, each in [−1, 1], with an interval for a two-sided confidence. null
 * where there is no task.
 *
 * The interval is that of Agresti and Min (2005, Statistics in Medicine 24, 729–740) for matched proportions: Wald's after
 * half a pair was added to each of the four cells, which are half a difference of 1, half a one of −1 and one of 0. So it
 * has a width also where the two never differ. Differences of several samples a task lie between, and scatter less.
 */
export function pairedDifference(differences: readonly number[], confidence: number): Mean | null {
  const n = differences.length;
  if (n === 0) return null;
  const sum = differences.reduce((all, one) => all + one, 0);
  const squares = differences.reduce((all, one) => all + one * one, 0) + 1;
  const center = sum / (n + 2);
  const spread =
    normalQuantile(0.5 + confidence / 2) * Math.sqrt((squares / (n + 2) - center * center) / (n + 2));
  return { mean: sum / n, n, low: Math.max(-1, center - spread), high: Math.min(1, center + spread) };
}
