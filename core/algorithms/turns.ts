import type { Sample } from './sample.ts';

/** Σ_{j ≥ k} γ^(j − k) r_j, one a turn. */
export function discounted(rewards: readonly number[], gamma: number): number[] {
  const sums = [...rewards];
  for (let k = sums.length - 2; k >= 0; k--) sums[k]! += gamma * sums[k + 1]!;
  return sums;
}

/** One number a turn, on all sampled tokens of it [T]; 0 elsewhere. */
export function overTurns({ mask, turns }: Sample, values: readonly number[]): number[] {
  const laid = mask.map(() => 0);
  turns.forEach(({ start, end }, k) => laid.fill(values[k]!, start, end));
  return laid;
}
