/** One line of a benchmark's output. What cannot be compared has no anchor. */
export interface BenchRow {
  bench: string;
  case: string;
  /** Medians over `runs` interleaved runs each. */
  ours: number;
  anchor: number | null;
  /** Greater than 1 where ours is better. */
  ratio: number | null;
  unit: string;
  runs: number;
  /** Mean of ours less its anchor, where each run has one of its own, with the 95 % interval of Student's t. */
  difference?: { mean: number; low: number; high: number } | null;
  /** Most memory that each side's process held, where each has one of its own. */
  peakMegabytes?: { ours: number; anchor: number };
}

export interface Samples {
  bench: string;
  case: string;
  unit: string;
  better: 'more' | 'less';
  /** One value a run. */
  ours: readonly number[];
  /** As many values, or a limit that is not measured. */
  anchor: readonly number[] | number | null;
}

/** Significant digits: more than any of these measurements repeats. */
const DIGITS = 5;

/** Throws a RangeError where there is nothing to take the median of. */
export function benchRow({ better, ...samples }: Samples): BenchRow {
  const ours = median(samples.ours);
  const anchor =
    typeof samples.anchor === 'object' ? samples.anchor && median(samples.anchor) : samples.anchor;
  const ratio = anchor === null ? null : better === 'more' ? ours / anchor : anchor / ours;
  return {
    bench: samples.bench,
    case: samples.case,
    ours: rounded(ours),
    anchor: anchor === null ? null : rounded(anchor),
    ratio: ratio === null || !Number.isFinite(ratio) ? null : rounded(ratio),
    unit: samples.unit,
    runs: samples.ours.length,
  };
}

export function median(values: readonly number[]): number {
  if (values.length === 0) throw new RangeError('nothing was measured');
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

/** 97.5 % quantiles of Student's t with 1, 2, … degrees of freedom. */
const STUDENT = [12.7062, 4.30265, 3.18245, 2.77645, 2.57058, 2.44691, 2.36462, 2.306, 2.26216];

/** Run by run; null for a single one, which says nothing of its scatter. Beyond ten the interval is a little too wide. */
export function pairedDifference({
  ours,
  anchor,
}: {
  ours: readonly number[];
  anchor: readonly number[];
}): NonNullable<BenchRow['difference']> | null {
  const n = ours.length;
  if (n < 2) return null;
  const differences = ours.map((value, run) => value - anchor[run]!);
  const mean = differences.reduce((a, b) => a + b, 0) / n;
  const variance = differences.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (n - 1);
  const spread = STUDENT[Math.min(n, STUDENT.length + 1) - 2]! * Math.sqrt(variance / n);
  return { mean: rounded(mean), low: rounded(mean - spread), high: rounded(mean + spread) };
}

const rounded = (value: number): number => Number(value.toPrecision(DIGITS));
