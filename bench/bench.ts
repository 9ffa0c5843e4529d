import type { BenchRow } from './bench-row.ts';

export interface BenchOptions {
  /** Measured runs of each side; every benchmark has its own default. */
  runs?: number;
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

/** Yields its rows as they are measured, and leaves nothing running. */
export type Bench = (options: BenchOptions) => AsyncIterable<BenchRow>;
