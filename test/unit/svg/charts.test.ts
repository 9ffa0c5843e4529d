import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { binsOf, histogram, lineChart, shortNumber, sparkline } from '../../../svg/charts.ts';

const chart = (points: [number, number | null][], more: object = {}): string =>
  lineChart({ label: 'a chart', series: [{ name: 'one', points }], ...more });

/** All points of all lines, as drawn. */
const drawn = (svg: string): [number, number][] =>
  [...svg.matchAll(/<polyline points="([^"]+)"/g)].flatMap(([, points]) =>
    points!.split(' ').map((point) => point.split(',').map(Number) as [number, number]),
  );

test('whatever is charted lies within the plot, and is well-formed', () => {
  const value = fc.oneof(fc.double({ noNaN: true, min: -1e15, max: 1e15 }), fc.constant(null));
  fc.assert(
    fc.property(fc.array(value, { maxLength: 50 }), (values) => {
      const svg = chart(values.map((y, x) => [x, y]));
      expect(svg).not.toMatch(/NaN|Infinity|undefined/);
      for (const [x, y] of drawn(svg)) {
        expect(x).toBeGreaterThanOrEqual(45);
        expect(x).toBeLessThanOrEqual(351);
        expect(y).toBeGreaterThanOrEqual(13);
        expect(y).toBeLessThanOrEqual(165);
      }
    }),
  );
});

test.each([
  [
    [0.075, 0.225],
    ['0.05', '0.1', '0.15', '0.2', '0.25'],
  ],
  [
    [0.58, 1.02],
    ['0.4', '0.6', '0.8', '1', '1.2'],
  ],
  [[0.15], ['0.05', '0.1', '0.15', '0.2', '0.25']],
  [
    [-0.012, 0.12],
    ['-0.02', '0', '0.02', '0.04', '0.06', '0.08', '0.1', '0.12'],
  ],
])('the ticks of %j are round numbers, the last of them at the top of the plot', (values, labels) => {
  const svg = chart(values.map((y, x) => [x, y]));
  const ticks = [...svg.matchAll(/<text x="40" y="([\d.-]+)"[^>]*>([^<]*)</g)].map(([, y, text]) => ({
    y: Number(y),
    text,
  }));
  expect(ticks.map(({ text }) => text)).toEqual(labels);
  expect(Math.min(...ticks.map(({ y }) => y))).toBeGreaterThanOrEqual(14);
});

test('a single step has its number below it, and labels of y are short and within the drawing', () => {
  const svg = chart([[3, -0.0867]]);
  const labels = [...svg.matchAll(/<text x="[^"]*" y="([^"]*)"[^>]*>([^<]*)</g)];
  expect(labels.map(([, , words]) => words)).toContain('step 3');
  expect(labels.map(([, , words]) => words)).not.toContain('2.5');
  for (const [, y, words] of labels) {
    expect(Number(y)).toBeGreaterThanOrEqual(11);
    expect(words!.length).toBeLessThan(7);
  }
});

test('a line has a gap where nothing is known', () => {
  const svg = chart([
    [1, 1],
    [2, 2],
    [3, null],
    [4, 1],
    [5, 2],
  ]);
  expect(svg.match(/<polyline/g)).toHaveLength(2);
});

test('of thousands of points every peak stays', () => {
  const points = Array.from({ length: 5000 }, (_, x): [number, number] => [x, x === 3333 ? 100 : 1]);
  const all = drawn(chart(points));
  expect(all.length).toBeLessThan(1000);
  expect(Math.min(...all.map(([, y]) => y))).toBeLessThan(20);
});

test('on top of each other lines end at their sum', () => {
  const series = [
    { name: 'a', points: [[1, 2] as const, [2, 2] as const] },
    { name: 'b', points: [[1, 3] as const, [2, null] as const] },
  ];
  const svg = lineChart({ label: 'stack', series, stacked: true, low: 0 });
  const [first, second] = [...svg.matchAll(/<polyline points="([^"]+)"/g)].map(([, points]) =>
    points!.split(' ').map((point) => Number(point.split(',')[1])),
  );
  // What is not known of one counts for nothing: there both lie on each other.
  expect(first![1]).toBe(second![1]);
  expect(second![0]).toBeLessThan(first![0]!);
});

test('labels are text, with what they hide written out', () => {
  const label = '"><script>alert(1)</script>\u202e';
  const svg = [
    lineChart({
      label,
      series: [{ name: label, points: [[1, 1] as const, [2, 2] as const] }],
      stretches: [{ from: 1, to: 2, name: label }],
      marks: [{ x: 1, kind: 'alarm', label }],
    }),
    histogram({ label, values: [1, 2] }),
    sparkline(label, [0, 1]),
  ].join('');
  expect(svg).not.toMatch(/<script|\u202e|="[^"]*"[^ />]/);
  expect(svg).toContain('\\u202e');
});

test('every value falls into one bin, the largest into the last', () => {
  fc.assert(
    fc.property(
      fc.array(fc.integer({ min: -1e9, max: 1e9 }), { minLength: 1, maxLength: 100 }),
      fc.integer({ min: 1, max: 40 }),
      (values, parts) => {
        const bins = binsOf(values, parts);
        expect(bins.reduce((sum, { count }) => sum + count, 0)).toBe(values.length);
        expect(bins).toHaveLength(parts);
        const largest = Math.max(...values);
        expect(bins.at(-1)!.to).toBeGreaterThanOrEqual(largest);
        if (largest > Math.min(...values)) expect(bins.at(-1)!.count).toBeGreaterThan(0);
      },
    ),
  );
});

test('numbers are short', () => {
  expect([0, 0.5, 1234, 12_345, 1_700_000, 2.5e9, 1e-5, -0.123_45].map(shortNumber)).toEqual([
    '0',
    '0.5',
    '1230',
    '12.3k',
    '1.7M',
    '2.5G',
    '1.0e-5',
    '-0.123',
  ]);
});

test('of thousands of points a short gap stays one, too', () => {
  const points = Array.from({ length: 5000 }, (_, x): [number, number | null] => [
    x,
    x >= 2003 && x < 2006 ? null : x % 7,
  ]);
  expect(chart(points).match(/<polyline/g)).toHaveLength(2);
});

test('a single measurement has its interval, at its height', () => {
  const series = [{ name: 'one', points: [[3, 0.5] as const], band: [[3, 0.25, 0.75] as const] }];
  const svg = lineChart({ label: 'a chart', series, low: 0, high: 1 });
  const [, top, height] = /<rect x="[^"]*" y="([^"]*)" width="[^"]*" height="([^"]*)"[^>]*class="band-0"/
    .exec(svg)!
    .map(Number);
  // The plot is from 14 down to 164.
  expect([top, height]).toEqual([51.5, 75]);
});

test('charts of the same stages have the same steps below them, and what happened stands at its step', () => {
  const stretches = [
    { from: 1, to: 4, name: 'one' },
    { from: 5, to: 11, name: 'two' },
  ];
  const marks = [{ x: 3, kind: 'alarm' as const, label: 'an alarm' }];
  const xOf = (step: number): number => 46 + ((step - 1) / 10) * 304;
  // What is measured every so often has no point at the first step.
  const sparse = chart([[6, 0.5]], { stretches, marks });
  const dense = chart(
    Array.from({ length: 11 }, (_, i) => [i + 1, i]),
    { stretches, marks },
  );
  const [, at] = /cx="([^"]*)"/.exec(sparse)!.map(Number);
  expect(at).toBeCloseTo(xOf(6), 1);
  for (const svg of [sparse, dense]) {
    const [, alarm] = /<line x1="([^"]*)"[^>]*class="alarm-line"/.exec(svg)!.map(Number);
    expect(alarm).toBeCloseTo(xOf(3), 1);
    const boxes = [...svg.matchAll(/<rect x="([^"]*)"[^>]* width="([^"]*)"[^>]*class="stretch-/g)].map(
      ([, left, width]) => [Number(left), Number(left) + Number(width)],
    );
    const border = xOf(4.5);
    for (const [i, ends] of [
      [46, border],
      [border, 350],
    ].entries()) {
      expect(boxes[i]![0]).toBeCloseTo(ends[0]!, 0);
      expect(boxes[i]![1]).toBeCloseTo(ends[1]!, 0);
    }
  }
});

test('thousands of marks are as many as can be told apart, and each says how many it stands for', () => {
  const marks = Array.from({ length: 5000 }, (_, x) => ({
    x,
    kind: x % 2 === 0 ? ('alarm' as const) : ('decision' as const),
    label: `step ${x}`,
  }));
  const svg = chart(
    marks.map(({ x }) => [x, 1]),
    { marks },
  );
  const drawnMarks = [...svg.matchAll(/<g><title>step \d+(?:, and (\d+) more right behind)?<\/title>/g)];
  expect(drawnMarks.length).toBeLessThan(250);
  expect(drawnMarks.reduce((sum, [, more]) => sum + 1 + Number(more ?? 0), 0)).toBe(5000);
});
