/** One line of a benchmark's output; `ratio` is greater than 1 where ours is better. */
export interface BenchRow {
  bench: string;
  case: string;
  /** Medians over `runs` interleaved runs each. */
  ours: number;
  anchor: number;
  ratio: number;
  unit: string;
  runs: number;
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}
