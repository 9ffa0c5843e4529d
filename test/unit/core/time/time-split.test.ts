import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Span } from '../../../../core/requests/span.ts';
import { addTime, splitTime } from '../../../../core/time/time-split.ts';

const PARTS: Span['part'][] = ['rollout', 'tool', 'verification', 'learner', 'data'];
const span = fc
  .record({
    part: fc.constantFrom(...PARTS),
    start: fc.integer({ min: -500, max: 5000 }),
    length: fc.nat(2000),
  })
  .map(({ part, start, length }): Span => ({ part, start, end: start + length }));
const sum = (split: Record<string, number>) => Object.values(split).reduce((a, b) => a + b, 0);

test('the parts sum to the wall time, whatever ran at once, before the start or past the end', () => {
  fc.assert(
    fc.property(fc.array(span, { maxLength: 12 }), fc.nat(4000), fc.nat(4000), (spans, start, length) => {
      const split = splitTime(start, start + length, spans);
      expect(sum(split)).toBeCloseTo(length / 1000, 9);
      for (const part of PARTS) {
        const alone = spans.filter((s) => s.part === part);
        const most = alone.reduce((total, s) => total + s.end - s.start, 0) / 1000;
        expect(split[part]).toBeGreaterThanOrEqual(0);
        expect(split[part]).toBeLessThanOrEqual(most + 1e-9);
      }
    }),
  );
});

test('a moment in which several parts ran belongs to one of them, and an idle one to orchestration', () => {
  const split = splitTime(0, 10_000, [
    { part: 'rollout', start: 1000, end: 4000 },
    { part: 'tool', start: 3000, end: 6000 },
    { part: 'learner', start: 7000, end: 9000 },
    { part: 'data', start: 7500, end: 8000 },
  ]);
  expect(split).toEqual({ rollout: 3, tool: 2, verification: 0, learner: 2, data: 0, orchestration: 3 });
});

test('splits add up part by part', () => {
  const one = splitTime(0, 3000, [{ part: 'data', start: 0, end: 1000 }]);
  const two = splitTime(0, 5000, [{ part: 'learner', start: 0, end: 5000 }]);
  expect(addTime(one, two)).toMatchObject({ data: 1, learner: 5, orchestration: 2, rollout: 0 });
});

test('tens of thousands of spans are split in a moment', () => {
  const spans = Array.from({ length: 40_000 }, (_, i): Span => ({ part: 'tool', start: i, end: i + 1 }));
  const begun = process.cpuUsage();
  expect(splitTime(0, 40_000, spans).tool).toBeCloseTo(40, 6);
  // Each with each would be 1.6 thousand millions of looks.
  expect(process.cpuUsage(begun).user / 1e6).toBeLessThan(2);
});
