import type { Span } from '../requests/span.ts';
import { PARTS } from './spans.ts';

type TimePart = Span['part'];
/** Wall seconds by part. */
export type TimeSplit = Record<TimePart | 'orchestration', number>;

export const noTime = (): TimeSplit => ({
  rollout: 0,
  tool: 0,
  verification: 0,
  learner: 0,
  data: 0,
  orchestration: 0,
});

/**
 * Splits the wall time of a step over its parts: each moment belongs to the part that was running (the first of PARTS
 * if several were), and to orchestration if none was.
 */
export function splitTime(start: number, end: number, spans: readonly Span[]): TimeSplit {
  const split = noTime();
  const within = (at: number): number => Math.min(end, Math.max(start, at));
  const edges = spans
    .flatMap(({ part, start: from, end: to }) => [
      { part, at: within(from), change: 1 },
      { part, at: within(to), change: -1 },
    ])
    .toSorted((a, b) => a.at - b.at);
  const running = noTime();
  let since = start;
  for (const { part, at, change } of edges) {
    split[PARTS.find((one) => running[one] > 0) ?? 'orchestration'] += (at - since) / 1000;
    running[part] += change;
    since = at;
  }
  split.orchestration += (end - since) / 1000;
  return split;
}

/** All parts together: the wall time that was split. */
export const totalTime = (split: TimeSplit): number =>
  Object.values(split).reduce((sum, seconds) => sum + seconds, 0);

export function addTime(a: TimeSplit, b: TimeSplit): TimeSplit {
  const sum = noTime();
  for (const part of Object.keys(sum) as (keyof TimeSplit)[]) sum[part] = a[part] + b[part];
  return sum;
}
