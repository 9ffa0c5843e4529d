import type { Span } from './requests.ts';

export type Part = Span['part'];
/** Wall seconds by part. */
export type TimeSplit = Record<Part | 'orchestration', number>;

export const noTime = (): TimeSplit => ({
  rollout: 0,
  tool: 0,
  verification: 0,
  learner: 0,
  data: 0,
  orchestration: 0,
});

/** Where two parts ran at once the time goes to the first of these. */
const PRIORITY: Part[] = ['rollout', 'learner', 'tool', 'verification', 'data'];

/**
 * Splits the wall time of a step over its parts: each moment belongs to the part that was running (the first of
 * PRIORITY if several were), and to orchestration if none was.
 */
export function splitTime(start: number, end: number, spans: readonly Span[]): TimeSplit {
  const split = noTime();
  const edges = [...new Set([start, end, ...spans.flatMap((span) => [span.start, span.end])])]
    .filter((edge) => edge >= start && edge <= end)
    .toSorted((a, b) => a - b);
  for (let i = 0; i + 1 < edges.length; i++) {
    const [from, to] = [edges[i]!, edges[i + 1]!];
    const running = PRIORITY.find((part) =>
      spans.some((span) => span.part === part && span.start <= from && span.end >= to),
    );
    split[running ?? 'orchestration'] += (to - from) / 1000;
  }
  return split;
}

export function addTime(a: TimeSplit, b: TimeSplit): TimeSplit {
  const sum = noTime();
  for (const part of Object.keys(sum) as (keyof TimeSplit)[]) sum[part] = a[part] + b[part];
  return sum;
}
