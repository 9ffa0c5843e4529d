import type { Span } from '../requests/span.ts';

/** What ran; where several did at once, a moment counts as the first of these. */
export const PARTS = ['rollout', 'learner', 'tool', 'verification', 'data'] as const satisfies Span['part'][];

/** Spans of one part that are kept apart, so that they may pass through histories. */
const MOST = 16;

/**
 * Both lists as one, overlapping spans of a part united. Beyond sixteen of a part, neighbours with the least between
 * them become one span of their summed length that ends where the last did: a part's time stays what it was, and only
 * where it lies becomes vague.
 */
export function addSpans(before: readonly Span[], more: readonly Span[]): Span[] {
  const all = [...before, ...more];
  return PARTS.flatMap((part) => drawnTogether(united(all.filter((span) => span.part === part))));
}

/** Spans of one part without overlaps, in order. */
function united(spans: readonly Span[]): Span[] {
  const apart: Span[] = [];
  for (const span of spans.toSorted((a, b) => a.start - b.start)) {
    const last = apart.at(-1);
    if (last && span.start <= last.end) last.end = Math.max(last.end, span.end);
    else apart.push({ ...span });
  }
  return apart;
}

function drawnTogether(spans: readonly Span[]): Span[] {
  if (spans.length <= MOST) return [...spans];
  const gap = (i: number): number => spans[i]!.start - spans[i - 1]!.end;
  const widest = [...spans.keys()].slice(1).toSorted((a, b) => gap(b) - gap(a));
  const kept = new Set(widest.slice(0, MOST - 1));
  const together: Span[] = [];
  spans.forEach((span, i) => {
    const last = together.at(-1);
    if (!last || kept.has(i)) together.push({ ...span });
    else together[together.length - 1] = { ...span, start: last.start + gap(i) };
  });
  return together;
}
