import { expect, test } from 'vitest';
import { lanes } from '../../../svg/lanes.ts';
import type { LaneBar } from '../../../svg/lanes.ts';
import { xmlProblem } from '../../support/well-formed.ts';

const bar = (from: number, to: number, look: LaneBar['look'] = 'done', title = 'a bar'): LaneBar => ({
  from,
  to,
  look,
  title,
});
const draw = (bars: LaneBar[], options: object = {}): string =>
  lanes([{ label: 'resume', bars }], { title: 'what happened', from: 0, to: 10_000, id: 'one', ...options });
const heights = (svg: string): number[] =>
  [...svg.matchAll(/<g><rect [^>]*?y="([\d.]+)"/g)].map(([, y]) => Number(y));

test('bars that overlap lie below each other, and those that do not in one row', () => {
  // Row by row.
  const [first, third, second] = heights(draw([bar(0, 5000), bar(4000, 8000), bar(6000, 9000)]));
  expect(second).toBeGreaterThan(first!);
  expect(third).toBe(first);
});

test('work stands in the row in which it was waited for, however short the wait was', () => {
  const [waited, done] = heights(draw([bar(0, 1, 'waited'), bar(1, 5000)]));
  expect(Math.abs(waited! - done!)).toBeLessThan(10);
});

test('however many overlap, the picture stays as high as it may be', () => {
  const many = Array.from({ length: 400 }, (_, n) => bar(n, 10_000));
  expect(new Set(heights(draw(many))).size).toBe(12);
});

test('what was lost is hatched, what took no time is seen, and time stands below', () => {
  const svg = draw([bar(1000, 1000), bar(2000, 8000, 'lost')]);
  expect(svg).toContain('fill="url(#one-lost)"');
  expect(svg).toMatch(/width="2(\.00)?" height="13" rx="2" class="bar-done"/);
  expect([...svg.matchAll(/>(\d+) s</g)].map(([, seconds]) => Number(seconds))).toEqual([0, 2, 4, 6, 8, 10]);
});

test('whatever a worker calls itself, it stays text, and a timeline of no length can be drawn', () => {
  const svg = draw([bar(0, 0, 'failed', '</title><script>alert(1)</script> & "\'')], {
    to: 0,
    title: '"><x',
  });
  expect(xmlProblem(svg)).toBeUndefined();
  expect(svg).not.toContain('<script');
  expect(svg).not.toContain('NaN');
});
