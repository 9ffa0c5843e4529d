import { escapeXml, line, rect, text } from './elements.ts';

/**
 * Charts as `<svg>` elements of a page. Colours, and which lines are dashed, are classes of its style sheet: a page whose
 * policy forbids styles in the text shows them as they are meant. What a chart says is in its label and, where somebody
 * wants the numbers, in a table beside it.
 */
export interface ChartSeries {
  name: string;
  /** In the order of x. A gap in the line where y is null. */
  points: readonly (readonly [x: number, y: number | null])[];
  /** Around the line, such as a confidence interval. */
  band?: readonly (readonly [x: number, low: number, high: number])[];
}

/** A stretch of x that belongs together, such as the steps of a stage. */
export interface Stretch {
  from: number;
  to: number;
  name: string;
}

/** Something that happened at x: a decision, an alarm. */
export interface ChartMark {
  x: number;
  kind: 'decision' | 'alarm';
  label: string;
}

export interface LineChart {
  /** What a screen reader says of it. */
  label: string;
  series: readonly ChartSeries[];
  stretches?: readonly Stretch[];
  marks?: readonly ChartMark[];
  /** What y begins or ends with whatever the points say. */
  low?: number;
  high?: number;
  /** The series lie on each other, and the uppermost is their sum. */
  stacked?: boolean;
  format?: (y: number) => string;
  /** Of x. */
  unit?: string;
}

const [WIDTH, HEIGHT] = [360, 190];
const PLOT = { left: 46, top: 14, right: WIDTH - 10, bottom: HEIGHT - 26 };
/** More points than this are drawn as the lowest and the highest of each stretch of them. */
const MOST_POINTS = 400;
/** Two that are nearer to each other are drawn as one. */
const MARK_WIDTH = 3;
/** Lines that can be told apart without colours. */
export const MOST_SERIES = 6;

const n = (value: number): string => String(Number(value.toFixed(1)));

/** Three digits, without those that say nothing. */
export function shortNumber(value: number): string {
  if (value === 0) return '0';
  const size = Math.abs(value);
  if (size >= 1e12 || size < 1e-3) return value.toExponential(1).replace('e+', 'e');
  if (size >= 1e9) return `${Number((value / 1e9).toPrecision(3))}G`;
  if (size >= 1e6) return `${Number((value / 1e6).toPrecision(3))}M`;
  if (size >= 1e4) return `${Number((value / 1000).toPrecision(3))}k`;
  return String(Number(value.toPrecision(3)));
}

export function lineChart(chart: LineChart): string {
  const { label, format = shortNumber, stretches = [], marks = [], unit = 'step' } = chart;
  const series = (chart.stacked === true ? stack(chart.series) : chart.series).slice(0, MOST_SERIES);
  // Whatever happened before the first point, or after the last one, has its place, too.
  const xs = [
    ...series.flatMap(({ points }) => points.map(([x]) => x)),
    ...stretches.flatMap(({ from, to }) => [from, to]),
    ...marks.map(({ x: at }) => at),
  ];
  const values = series.flatMap(({ points, band = [] }) => [
    ...points.flatMap(([, y]) => (isKnown(y) ? [y] : [])),
    ...band.flatMap(([, low, high]) => [low, high]),
  ]);
  if (values.length === 0) return emptyChart(label);
  const [fromX, toX] = padded(smallest(xs), largest(xs));
  const { low, high, ticks } = axisOf(
    Math.min(chart.low ?? Infinity, smallest(values)),
    Math.max(chart.high ?? -Infinity, largest(values)),
  );
  const x = (value: number): number =>
    PLOT.left + ((value - fromX) / (toX - fromX)) * (PLOT.right - PLOT.left);
  const y = (value: number): number =>
    PLOT.bottom - ((value - low) / (high - low)) * (PLOT.bottom - PLOT.top);
  return svg(label, [
    ...stretches.map(({ from, to, name }, i) => {
      const [left, right] = [x(Math.max(fromX, from - 0.5)), x(Math.min(toX, to + 0.5))];
      const box = rect(left, PLOT.top, right - left, PLOT.bottom - PLOT.top, `stretch-${i % 2}`);
      return `<g><title>${escapeXml(name)}</title>${box}</g>`;
    }),
    ...ticks.map((tick) => line(PLOT.left, y(tick), PLOT.right, y(tick), 'grid')),
    ...ticks.map((tick) =>
      text(PLOT.left - 6, y(tick) + 4, format(tick), { size: 11, anchor: 'end', className: 'muted' }),
    ),
    ...(smallest(xs) === largest(xs)
      ? [under(x(smallest(xs)), `${unit} ${shortNumber(smallest(xs))}`, 'middle')]
      : [
          under(PLOT.left, shortNumber(fromX), 'start'),
          under(PLOT.right, `${unit} ${shortNumber(toX)}`, 'end'),
        ]),
    ...series.flatMap(({ band = [] }, i) =>
      band.length === 1
        ? band.map(([at, bottom, top]) => rect(x(at) - 3, y(top), 6, y(bottom) - y(top), `band-${i}`))
        : band.length === 0
          ? []
          : [
              `<polygon class="band-${i}" points="${[
                ...band.map(([at, , top]) => `${n(x(at))},${n(y(top))}`),
                ...band.toReversed().map(([at, bottom]) => `${n(x(at))},${n(y(bottom))}`),
              ].join(' ')}"/>`,
            ],
    ),
    ...series.flatMap(({ points }, i) => pieces(thinned(points)).map((piece) => curve(piece, i))),
    ...apart(marks, x).map(({ x: at, kind, label: words }) => mark(x(at), kind, words)),
    line(PLOT.left, PLOT.bottom, PLOT.right, PLOT.bottom, 'axis'),
  ]);

  function curve(piece: readonly (readonly [number, number])[], i: number): string {
    if (piece.length === 1) {
      const [[at, value]] = piece as [readonly [number, number]];
      return `<circle cx="${n(x(at))}" cy="${n(y(value))}" r="2.5" class="dot-${i}"/>`;
    }
    const points = piece.map(([at, value]) => `${n(x(at))},${n(y(value))}`).join(' ');
    return `<polyline points="${points}" class="line-${i}"/>`;
  }
}

/** Below the plot, at x. */
const under = (x: number, words: string, anchor: 'start' | 'middle' | 'end'): string =>
  text(x, HEIGHT - 8, words, { size: 11, anchor, className: 'muted' });

/** An alarm is a triangle and a decision a diamond, so that colours are not needed. */
/** Marks that would lie on each other are the first of them, which says how many more there are. */
function apart(marks: readonly ChartMark[], x: (at: number) => number): ChartMark[] {
  const places = new Map<string, { first: ChartMark; more: number }>();
  for (const one of marks) {
    const place = `${one.kind} ${Math.round(x(one.x) / MARK_WIDTH)}`;
    const known = places.get(place);
    if (known) known.more++;
    else places.set(place, { first: one, more: 0 });
  }
  return [...places.values()].map(({ first, more }) =>
    more === 0 ? first : { ...first, label: `${first.label}, and ${more} more right behind` },
  );
}

function mark(x: number, kind: ChartMark['kind'], label: string): string {
  const top = PLOT.top - 2;
  const shape =
    kind === 'alarm'
      ? `<path d="M ${n(x)} ${n(top - 8)} l 5 9 l -10 0 Z" class="alarm"/>`
      : `<path d="M ${n(x)} ${n(top - 9)} l 4.5 4.5 l -4.5 4.5 l -4.5 -4.5 Z" class="decision"/>`;
  return `<g><title>${escapeXml(label)}</title>${line(x, PLOT.top, x, PLOT.bottom, `${kind}-line`)}${shape}</g>`;
}

/** How many of the values fall into each of so many equal parts of what they span. */
export function histogram({
  label,
  values,
  parts = 20,
  low,
  high,
}: {
  label: string;
  values: readonly number[];
  parts?: number;
  low?: number;
  high?: number;
}): string {
  if (values.length === 0) return emptyChart(label);
  const bins = binsOf(values, parts, low, high);
  const most = Math.max(...bins.map(({ count }) => count));
  const width = (PLOT.right - PLOT.left) / bins.length;
  const height = (count: number): number => (count / most) * (PLOT.bottom - PLOT.top);
  return svg(label, [
    line(PLOT.left, PLOT.top, PLOT.right, PLOT.top, 'grid'),
    text(PLOT.left - 6, PLOT.top + 4, String(most), { size: 11, anchor: 'end', className: 'muted' }),
    ...bins.map(({ from, to, count }, i) => {
      const bar = rect(
        PLOT.left + i * width + 0.5,
        PLOT.bottom - height(count),
        width - 1,
        height(count),
        'bar',
      );
      return `<g><title>${escapeXml(`${shortNumber(from)} to ${shortNumber(to)}: ${count}`)}</title>${bar}</g>`;
    }),
    line(PLOT.left, PLOT.bottom, PLOT.right, PLOT.bottom, 'axis'),
    text(PLOT.left, HEIGHT - 8, shortNumber(bins[0]!.from), { size: 11, className: 'muted' }),
    text(PLOT.right, HEIGHT - 8, shortNumber(bins.at(-1)!.to), {
      size: 11,
      anchor: 'end',
      className: 'muted',
    }),
  ]);
}

export interface Bin {
  from: number;
  to: number;
  count: number;
}

export function binsOf(values: readonly number[], parts: number, low?: number, high?: number): Bin[] {
  const [from, to] = padded(
    Math.min(low ?? Infinity, smallest(values)),
    Math.max(high ?? -Infinity, largest(values)),
  );
  const bins = Array.from({ length: parts }, (_, i) => ({
    from: from + ((to - from) * i) / parts,
    to: from + ((to - from) * (i + 1)) / parts,
    count: 0,
  }));
  for (const value of values) {
    const at = Math.floor(((value - from) / (to - from)) * parts);
    bins[Math.max(0, Math.min(parts - 1, at))]!.count++;
  }
  return bins;
}

/** A piece of a chart's line, for its legend. */
export const lineSample = (i: number): string =>
  `<svg class="sample" width="30" height="8" viewBox="0 0 30 8" aria-hidden="true"><polyline points="0,4 30,4" class="line-${i}"/></svg>`;

/** A curve from 0 to 1, of the height of a line of text. */
export function sparkline(label: string, values: readonly number[]): string {
  const [width, height] = [96, 24];
  const x = (i: number): number => 2 + (values.length < 2 ? 0 : (i / (values.length - 1)) * (width - 4));
  const y = (value: number): number => height - 3 - Math.min(1, Math.max(0, value)) * (height - 6);
  const points = values.map((value, i) => `${n(x(i))},${n(y(value))}`).join(' ');
  return `<svg class="spark" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" role="img" aria-label="${escapeXml(label)}"><polyline points="${points}" class="line-0"/></svg>`;
}

const emptyChart = (label: string): string =>
  svg(label, [
    text(WIDTH / 2, HEIGHT / 2, 'nothing yet', { anchor: 'middle', className: 'muted' }),
    line(PLOT.left, PLOT.bottom, PLOT.right, PLOT.bottom, 'axis'),
  ]);

const svg = (label: string, parts: readonly string[]): string =>
  `<svg class="chart" viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" aria-label="${escapeXml(label)}">${parts.join('')}</svg>`;

/** Each on top of those before it; what is not known of one counts for nothing. */
function stack(series: readonly ChartSeries[]): ChartSeries[] {
  const below = new Map<number, number>();
  return series.map(({ name, points }) => ({
    name,
    points: points.map(([x, y]) => {
      const sum = (below.get(x) ?? 0) + (y ?? 0);
      below.set(x, sum);
      return [x, sum] as const;
    }),
  }));
}

const isKnown = (y: number | null): y is number => y !== null && Number.isFinite(y);

/** What stands together without a gap. */
function pieces(points: ChartSeries['points']): (readonly [number, number])[][] {
  const found: (readonly [number, number])[][] = [[]];
  for (const [x, y] of points) {
    if (isKnown(y)) found.at(-1)!.push([x, y]);
    else found.push([]);
  }
  return found.filter((piece) => piece.length > 0);
}

/** At most so many points, with every peak that there was. */
function thinned(points: ChartSeries['points']): ChartSeries['points'] {
  if (points.length <= MOST_POINTS) return points;
  const size = Math.ceil((points.length * 2) / MOST_POINTS);
  const kept: (readonly [number, number | null])[] = [];
  for (let at = 0; at < points.length; at += size) {
    const stretch = points.slice(at, at + size);
    const some = stretch.filter(([, y]) => isKnown(y)) as [number, number][];
    const peaks =
      some.length === 0
        ? []
        : [some.reduce((a, b) => (b[1] < a[1] ? b : a)), some.reduce((a, b) => (b[1] > a[1] ? b : a))];
    // A gap stays one, too.
    const gap = stretch.find(([, y]) => !isKnown(y));
    kept.push(...new Set([...peaks, ...(gap ? [gap] : [])].toSorted((a, b) => a[0] - b[0])));
  }
  return kept;
}

/** Two different ends, whatever is between them. */
const padded = (low: number, high: number): [number, number] =>
  low === high ? [low - 0.5, high + 0.5] : [low, high];

interface Axis {
  low: number;
  high: number;
  ticks: number[];
}

/** From tick to tick, and every tick a whole multiple of what lies between two of them. */
function axisOf(low: number, high: number): Axis {
  const size = Math.max(Math.abs(low), Math.abs(high));
  // Values that differ by rounding alone are one.
  if (high - low <= 1e-12 * size || size < 1e-290) {
    return size < 1e-290 ? axisOf(0, 1) : axisOf(low - size / 2, high + size / 2);
  }
  let step = stepOf(high - low);
  for (;;) {
    const [first, last] = [Math.floor(low / step), Math.ceil(high / step)];
    // What is rounded to ticks spans more, for which they may be too many.
    const wider = stepOf((last - first) * step);
    if (wider <= 1.5 * step) {
      const ticks = Array.from({ length: last - first + 1 }, (_, i) =>
        Number(((first + i) * step).toPrecision(12)),
      );
      return { low: first * step, high: last * step, ticks };
    }
    step = wider;
  }
}

/** 1, 2 or 5 times a power of ten: three to six of them fill the span. */
function stepOf(span: number): number {
  const power = 10 ** Math.floor(Math.log10(span / 3));
  return [5, 2, 1].map((digit) => digit * power).find((step) => span / step >= 3) ?? power;
}

const smallest = (values: readonly number[]): number =>
  values.reduce((a, b) => (Number.isFinite(b) && b < a ? b : a), Infinity);

const largest = (values: readonly number[]): number =>
  values.reduce((a, b) => (Number.isFinite(b) && b > a ? b : a), -Infinity);
