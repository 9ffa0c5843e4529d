import { GradusError } from '../core/errors.ts';
import { median } from '../core/statistics/median.ts';
import { meanWithStudent } from '../core/statistics/student.ts';
import type { Verdict } from '../recipes/verdict.ts';

export interface BenchOptions {
  /** Measured runs of each side; every benchmark has its own default. */
  runs?: number;
  /** Of recipes: these alone, in the place of as many as `runs` says. */
  seeds?: readonly number[];
  /** Sizes of seconds: to see that it works, not to quote. */
  quick: boolean;
  /** Of benchmarks that compare cases: names of those that are run; absent: all. */
  only?: readonly string[];
  /** Folder of what they leave behind, beside their rows; absent: `.gradus/bench`. */
  out?: string;
  /** Go on with what that folder has. */
  resume?: boolean;
  /** Progress, for a person. */
  say: (text: string) => void;
  /** Aborted when a person has had enough: what was started is ended, and the reason thrown. */
  signal: AbortSignal;
}

/** The names that `--only` chooses. Throws GradusError('spec', 'bench-case') for a name that none has. */
export function chosenNames(all: readonly string[], { only }: Pick<BenchOptions, 'only'>): string[] {
  const stranger = only?.find((name) => !all.includes(name));
  if (stranger !== undefined)
    throw new GradusError('spec', 'bench-case', `there is no case "${stranger}": ${all.join(', ')}`);
  return all.filter((name) => only?.includes(name) ?? true);
}

/** Yields its rows as they are measured, and leaves nothing running. */
export type Bench = (options: BenchOptions) => AsyncIterable<BenchRow>;

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
  /** Of a recipe: the only seed that the row is of; absent: it is of all. */
  seed?: number;
  /** Mean of ours less its anchor, where each run has one of its own, with the 95 % interval of Student's t. */
  difference?: Difference | null;
  /** Of a part of the runs: the exact 95 % interval of Clopper and Pearson, in the row's unit. */
  interval?: { low: number; high: number };
  /** Of a recipe: what its paper says, and whether the difference confirms the direction. */
  claim?: string;
  verdict?: Verdict;
  /** Of a claim about another figure: success beside it, which tells whether it was had for nothing. */
  success?: Pick<BenchRow, 'ours' | 'anchor' | 'difference'>;
  /** Most memory that each side's process held, where each has one of its own. */
  peakMegabytes?: { ours: number; anchor: number };
}

export interface Difference {
  mean: number;
  low: number;
  high: number;
}

/** Rows of a benchmark. A single number as anchor is a limit, which is not measured. Throws a RangeError where ours has no runs. */
export const benchRowsOf =
  (bench: string) =>
  (
    name: string,
    unit: string,
    better: 'more' | 'less',
    ours: readonly number[],
    anchors: readonly number[] | number | null = null,
  ): BenchRow => {
    const own = median(ours);
    const anchor = typeof anchors === 'object' ? anchors && median(anchors) : anchors;
    const ratio = anchor === null ? NaN : better === 'more' ? own / anchor : anchor / own;
    return {
      bench,
      case: name,
      ours: rounded(own),
      anchor: anchor === null ? null : rounded(anchor),
      ratio: Number.isFinite(ratio) ? rounded(ratio) : null,
      unit,
      runs: ours.length,
    };
  };

/** Five significant digits: more than any of these measurements repeats. */
const rounded = (value: number): number => Number(value.toPrecision(5));

/** Run by run; null for a single one, which says nothing of its scatter. */
export function pairedDifference(ours: readonly number[], anchor: readonly number[]): Difference | null {
  const found = meanWithStudent(
    ours.map((value, run) => value - anchor[run]!),
    0.95,
  );
  return found && { mean: rounded(found.mean), low: rounded(found.low), high: rounded(found.high) };
}

/** Sides do the same work in turn, `runs` times after `warmUps` that do not count. Gives what each measured. */
export async function interleavedRuns<Side extends string, T>(
  name: string,
  sides: Record<Side, (run: number) => Promise<T>>,
  show: (measured: T) => string,
  {
    runs,
    warmUps = 1,
    say,
    signal,
  }: Pick<BenchOptions, 'say' | 'signal'> & { runs: number; warmUps?: number },
): Promise<Record<Side, T[]>> {
  const all = Object.entries(sides) as [Side, (run: number) => Promise<T>][];
  const measured = Object.fromEntries(all.map(([side]) => [side, [] as T[]])) as Record<Side, T[]>;
  for (let run = 1 - warmUps; run <= runs; run++) {
    const shown: string[] = [];
    for (const [side, work] of all) {
      signal.throwIfAborted();
      const one = await work(run);
      shown.push(all.length === 1 ? show(one) : `${side} ${show(one)}`);
      if (run > 0) measured[side].push(one);
    }
    say(`  ${name}, ${run > 0 ? `run ${run} of ${runs}` : 'warm-up'}: ${shown.join(', ')}`);
  }
  return measured;
}

/** What a work gives, once what it used is closed, whichever way it ended. */
export async function closing<T>(work: Promise<T>, close: () => Promise<void>): Promise<T> {
  try {
    return await work;
  } finally {
    await close();
  }
}
