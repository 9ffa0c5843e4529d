import { lowerBound, upperBound } from '../statistics/binomial.ts';
import { rate } from '../statistics/intervals.ts';
import type { Proportion } from '../statistics/intervals.ts';
import { median } from '../statistics/median.ts';
import type { ArmEstimates } from '../training/task-draw.ts';
import type { StepFacts } from '../training/step-facts.ts';
import { alikeAfter } from './alike.ts';
import type { Alike } from './alike.ts';
import { SIGNALS } from './signals.ts';
import type { Signal, Signals } from './signals.ts';

// A diagnosis compares what a signal is now with what the stage began with. Both are medians (but see `BY_MEAN`), which a spike or two do
// not move, of values that are known; where too few are, nothing can be said, and nothing is.

/** Known values that the stage begins with. */
const REFERENCE = 8;
/** Steps that "now" is told of. */
export const WINDOW = 8;
/** Known values among them that are needed. */
const ENOUGH = 5;

/** A value of so many steps ago, or up to twice as many, says which way a signal is going. */
export const AGO = 20;

/** What the diagnoses remember of a stage, some four kilobytes. Values have five digits. */
export interface Series {
  /** The first known values of each signal, at most `REFERENCE`. */
  first: Record<Signal, number[]>;
  /** The values of the latest steps, at most `WINDOW`, oldest first. */
  recent: Record<Signal, (number | null)[]>;
  /** What each signal was in the median at the latest two steps that are multiples of `AGO`, the older one first. */
  marks: Mark[];
  /** Of the stage, from 1; 0 before its first, absent in a stage that began with an earlier version. */
  stageStep?: number;
  /** The latest measurement on held-out tasks, and the one that showed most; null where there was none. */
  look: HeldOutMark | null;
  best: HeldOutMark | null;
  /** Step of the first of the latest measurements that are all below the best one; null where the latest is not. */
  fell: number | null;
  /** Success of each arm when the stage had begun; null until it has. */
  arms: Record<string, number> | null;
  /** Of each component of the reward whose latest scores are all alike; absent in a stage that began with an earlier version. */
  alike?: Record<string, Alike>;
  /** By what that has risen since, in the mean over the arms as they are drawn now; null where there are not several. */
  gain: number | null;
}

/** What the signals were in the median, and the gain so far. */
type Mark = Record<Signal, number | null> & { gain?: number | null };

/** Success on held-out tasks with its exact bounds, and the training reward at that time: the median of the latest steps. */
interface HeldOutMark {
  stageStep: number;
  success: number;
  low: number;
  high: number;
  reward: number | null;
}

/** A series as a stage that began with an earlier version carries it: newer signals, and marks, may be missing. */
type Carried = Omit<Series, 'first' | 'recent' | 'marks'> & {
  first: Partial<Series['first']>;
  recent: Partial<Series['recent']>;
  marks?: Series['marks'];
};

const ofEach = <T>(make: (signal: Signal) => T): Record<Signal, T> =>
  Object.fromEntries(SIGNALS.map((signal) => [signal, make(signal)])) as Record<Signal, T>;

export const noSeries = (): Series => ({
  first: ofEach(() => []),
  recent: ofEach(() => []),
  marks: [],
  stageStep: 0,
  look: null,
  best: null,
  fell: null,
  arms: null,
  alike: {},
  gain: null,
});

const rounded = (x: number | null): number | null => (x === null ? null : Number(x.toPrecision(5)));

/** The series with one step more; `heldOut` where the step was measured. `error` is that of each bound. */
export function extended(
  { first, recent, marks, look, best, fell, arms, alike }: Carried,
  step: {
    stageStep: number;
    signals: Signals;
    rollout: StepFacts['rollout'];
    heldOut: Proportion | null;
    estimates: ArmEstimates;
  },
  error: number,
): Series {
  const values = ofEach((signal) => rounded(step.signals[signal]));
  const next: Series = {
    first: ofEach((signal) => {
      const [value, begun] = [values[signal], first[signal] ?? []];
      return value === null || begun.length === REFERENCE ? begun : [...begun, value];
    }),
    recent: ofEach((signal) => [...(recent[signal] ?? []), values[signal]].slice(-WINDOW)),
    marks: marks ?? [],
    stageStep: step.stageStep,
    look,
    best,
    fell,
    alike: step.rollout === null ? (alike ?? {}) : alikeAfter(alike ?? {}, step.rollout),
    arms: arms ?? (first.success?.length === REFERENCE ? ratesOf(step.estimates) : null),
    gain: arms ? gainOf(arms, step.estimates) : null,
  };
  if (step.stageStep % AGO === 0)
    next.marks = [
      ...next.marks,
      { ...ofEach((signal) => rounded(now(next, signal))), gain: next.gain },
    ].slice(-2);
  if (step.heldOut === null || step.heldOut.trials === 0) return next;
  next.look = {
    stageStep: step.stageStep,
    success: rate(step.heldOut),
    low: lowerBound(step.heldOut, error),
    high: upperBound(step.heldOut, error),
    reward: now(next, 'reward'),
  };
  next.fell = best !== null && next.look.high < best.low ? (fell ?? step.stageStep) : null;
  if (best === null || next.look.low > best.low) next.best = next.look;
  return next;
}

const ratesOf = (estimates: ArmEstimates): Record<string, number> =>
  Object.fromEntries(Object.entries(estimates).map(([name, estimate]) => [name, rounded(rate(estimate))!]));

function gainOf(before: Record<string, number>, estimates: ArmEstimates): number | null {
  const arms = Object.entries(estimates).filter(([name]) => before[name] !== undefined);
  const trials = arms.reduce((sum, [, arm]) => sum + arm.trials, 0);
  if (arms.length < 2 || trials === 0) return null;
  return rounded(
    arms.reduce((sum, [name, arm]) => sum + arm.successes - arm.trials * before[name]!, 0) / trials,
  );
}

/** After the policy has been exchanged for an earlier one: what it was like lately is of another one. */
export const withoutRecent = (series: Series): Series => ({
  ...series,
  recent: ofEach(() => []),
  marks: [],
  alike: {},
  look: null,
  fell: null,
});

const mean = (values: readonly number[]): number =>
  values.reduce((sum, value) => sum + value, 0) / values.length;

/**
 * Of a step with few groups these are so coarse that their median jumps from end to end, so they are told by their mean:
 * both are bounded, and what they are asked for no single step can bring about.
 */
const BY_MEAN: ReadonlySet<Signal> = new Set(['equal', 'variance']);

const middle = (signal: Signal, values: readonly number[]): number =>
  BY_MEAN.has(signal) ? mean(values) : median(values);

/** What is known of the latest steps, oldest first. */
export const known = ({ recent }: Series, signal: Signal): number[] =>
  recent[signal].filter((value): value is number => value !== null);

/** What the latest steps are in the median, or mean; null where fewer than `ENOUGH` of them are known. */
export function now(series: Series, signal: Signal): number | null {
  const values = known(series, signal);
  return values.length < ENOUGH ? null : middle(signal, values);
}

/** Likewise what the stage began with; null until that is complete. */
export const before = ({ first }: Series, signal: Signal): number | null =>
  first[signal].length < REFERENCE ? null : middle(signal, first[signal]);

/** A median is known a quarter less exactly than a mean. */
const OF_MEDIAN = Math.sqrt(Math.PI / 2);

/** The standard error of what the signal is now and of what it was at first, by how much the values of each differ. */
export const errors = (series: Series, signal: Signal): { now: number; before: number } => ({
  now: errorOf(signal, known(series, signal)),
  before: errorOf(signal, series.first[signal]),
});

function errorOf(signal: Signal, values: readonly number[]): number {
  if (values.length < 2) return 0;
  const center = mean(values);
  const squares = values.reduce((sum, value) => sum + (value - center) ** 2, 0);
  const error = Math.sqrt(squares / (values.length - 1) / values.length);
  return BY_MEAN.has(signal) ? error : OF_MEDIAN * error;
}

/**
 * What the signal was twenty to forty steps ago, and whether that is what the stage began with, as it is before its
 * fortieth step; null before its twentieth.
 */
export function past(series: Series, signal: Signal): { value: number; isFirst: boolean } | null {
  const { marks } = series;
  if (marks.length === 0) return null;
  const isFirst = marks.length === 1;
  const value = isFirst ? before(series, signal) : (marks[0]![signal] ?? null);
  return value === null ? null : { value, isFirst };
}

/** Whether the policy can do what it is asked: then few groups have contrast and little is left to explore. */
const MASTERED = 0.9;
export const hasMastered = (series: Series): boolean => (now(series, 'success') ?? 0) >= MASTERED;
