import { meanWithInterval } from '../../core/statistics/intervals.ts';
import { group, line, panel, path, polyline, rect, svgPage, text } from '../../svg/elements.ts';
import type { Trial } from './trial.ts';

/** One small chart: curves of a few cases. */
export interface Panel {
  heading: string;
  /** Names of cases, at most three, each in a colour of its own. */
  cases: readonly string[];
}

const [COLUMNS, WIDTH, HEIGHT, GAP, MARGIN] = [4, 272, 230, 12, 24];
const PLOT = { left: 40, top: 62, width: 216, height: 132 };
const COLOURS = ['first', 'second', 'third'];

const STYLE = `
.first { stroke: #1f63b5; } .second { stroke: #b45f06; } .third { stroke: #7442a8; }
.first, .second, .third { stroke-width: 2; stroke-linejoin: round; }
.first-band, .first-key { fill: #1f63b5; } .second-band, .second-key { fill: #b45f06; } .third-band, .third-key { fill: #7442a8; }
.first-band, .second-band, .third-band { fill-opacity: 0.16; }
@media (prefers-color-scheme: dark) {
  .first { stroke: #74aef0; } .second { stroke: #f0a04b; } .third { stroke: #bd93e8; }
  .first-band, .first-key { fill: #74aef0; } .second-band, .second-key { fill: #f0a04b; } .third-band, .third-key { fill: #bd93e8; }
}
`;

/**
 * Success over sampled tokens: the mean of the seeds, and a band from the lowest to the highest of them. A panel is there
 * where its first case, which it is about, was run.
 */
export function curvesPage(
  { title, lines }: { title: string; lines: readonly string[] },
  all: readonly Panel[],
  trials: readonly Trial[],
  budget: number,
): string {
  const panels = all.filter(({ cases: [about] }) => trials.some((trial) => trial.case === about));
  const rows = Math.ceil(panels.length / COLUMNS);
  const top = MARGIN + 44 + lines.length * 20;
  const columns = Math.min(COLUMNS, Math.max(2, panels.length));
  const width = 2 * MARGIN + columns * (WIDTH + GAP) - GAP;
  const height = top + rows * (HEIGHT + GAP) - GAP + MARGIN;
  return svgPage({ title, width, height, style: STYLE }, [
    text(MARGIN, MARGIN + 20, title, { size: 22, bold: true }),
    ...lines.map((words, i) =>
      text(MARGIN, MARGIN + 46 + i * 20, words, { className: 'muted', maxWidth: width - 2 * MARGIN }),
    ),
    ...panels.map((one, i) =>
      group(
        MARGIN + (i % columns) * (WIDTH + GAP),
        top + Math.floor(i / columns) * (HEIGHT + GAP),
        chart(one, trials, budget),
      ),
    ),
  ]);
}

function chart({ heading, cases }: Panel, trials: readonly Trial[], budget: number): string[] {
  const x = (tokens: number): number => Math.min(1, tokens / budget) * PLOT.width;
  const y = (success: number): number => (1 - success) * PLOT.height;
  const shown = cases
    .map((name, i) => ({
      name,
      colour: COLOURS[i]!,
      points: band(trials.filter((one) => one.case === name)),
    }))
    .filter(({ points }) => points.length > 0);
  return [
    ...panel(WIDTH, HEIGHT, heading),
    ...keys(shown),
    group(PLOT.left, PLOT.top, [
      ...[0, 0.5, 1].flatMap((tick) => [
        line(0, y(tick), PLOT.width, y(tick), tick === 0 ? 'axis' : 'grid'),
        text(-8, y(tick) + 4, `${100 * tick}`, { size: 11, className: 'muted', anchor: 'end' }),
      ]),
      ...shown
        .slice(0, 1)
        .map(({ points: [start] }) => line(0, y(start!.mean), PLOT.width, y(start!.mean), 'dashed')),
      ...shown.map(({ colour, points }) =>
        path(
          [
            ...points.map(({ tokens, high }) => [x(tokens), y(high)] as const),
            ...points.toReversed().map(({ tokens, low }) => [x(tokens), y(low)] as const),
          ],
          `${colour}-band`,
        ),
      ),
      ...shown.map(({ colour, points }) =>
        polyline(
          points.map(({ tokens, mean }) => [x(tokens), y(mean)] as const),
          colour,
        ),
      ),
      text(0, PLOT.height + 16, '0', { size: 11, className: 'muted' }),
      text(PLOT.width, PLOT.height + 16, `${Math.round(budget / 1000)}k tokens`, {
        size: 11,
        className: 'muted',
        anchor: 'end',
      }),
    ]),
  ];
}

const keys = (shown: readonly { name: string; colour: string }[]): string[] => {
  const each = (WIDTH - 24) / Math.max(1, shown.length);
  return shown.flatMap(({ name, colour }, i) => [
    rect(16 + i * each, 38, 10, 10, `${colour}-key`, 2),
    text(31 + i * each, 47, name, { size: 11, className: 'muted', maxWidth: each - 18 }),
  ]);
};

interface Point {
  tokens: number;
  mean: number;
  low: number;
  high: number;
}

/** Measurement by measurement, over the seeds. */
function band(trials: readonly Trial[]): Point[] {
  const measurements = Math.min(...trials.map(({ points }) => points.length));
  if (trials.length === 0) return [];
  return Array.from({ length: measurements }, (_, i) => {
    const successes = trials.map(({ points }) => points[i]!.success);
    return {
      tokens: average(trials.map(({ points }) => points[i]!.tokens)),
      mean: average(successes),
      low: Math.min(...successes),
      high: Math.max(...successes),
    };
  });
}

const average = (values: readonly number[]): number => meanWithInterval(values, 0.95)!.mean;
