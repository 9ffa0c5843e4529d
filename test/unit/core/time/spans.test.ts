import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { addSpans, PARTS } from '../../../../core/time/spans.ts';
import type { Span } from '../../../../core/requests/span.ts';
import { splitTime } from '../../../../core/time/time-split.ts';

const span = fc
  .record({ part: fc.constantFrom(...PARTS), start: fc.nat(5000), length: fc.nat(50) })
  .map(({ part, start, length }): Span => ({ part, start, end: start + length }));

/** Milliseconds of the wall that each part takes by itself. */
const alone = (spans: readonly Span[]): number[] =>
  PARTS.map((part) =>
    Math.round(
      1000 *
        splitTime(
          0,
          6000,
          spans.filter((one) => one.part === part),
        )[part],
    ),
  );

test('however many spans are added, a result keeps few, and each part its time', () => {
  fc.assert(
    fc.property(fc.array(span, { maxLength: 300 }), (spans) => {
      const kept = addSpans([], spans);
      for (const part of PARTS) {
        expect(kept.filter((one) => one.part === part).length).toBeLessThanOrEqual(16);
      }
      expect(alone(kept)).toEqual(alone(spans));
      expect(addSpans(kept, [])).toEqual(kept);
    }),
  );
});

test('as long as they are few, every moment belongs to the part that it belonged to', () => {
  fc.assert(
    fc.property(fc.array(span, { maxLength: 16 }), (spans) => {
      const before = splitTime(0, 6000, spans);
      const after = splitTime(0, 6000, addSpans(spans.slice(0, 5), spans.slice(5)));
      for (const part of PARTS) expect(after[part]).toBeCloseTo(before[part], 9);
    }),
  );
});

test('an episode of many short turns between long calls does not become one long turn', () => {
  const turns = Array.from({ length: 100 }, (_, i): Span[] => [
    { part: 'rollout', start: i * 10_000, end: i * 10_000 + 100 },
    { part: 'tool', start: i * 10_000 + 100, end: (i + 1) * 10_000 },
  ]);
  let kept: Span[] = [];
  for (const pair of turns) kept = addSpans(kept, pair);
  const split = splitTime(0, 1_000_000, kept);
  expect(split.rollout).toBeCloseTo(10, 9);
  expect(split.tool).toBeGreaterThan(970);
});
