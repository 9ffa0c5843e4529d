import { calibrationInWords, toolName } from '../names.ts';
import type { CalibrationReport } from '../report.ts';
import { dot, group, line, panel, text, wrap } from '../../../../svg/elements.ts';

const PLOT = { left: 58, top: 64, size: 270 };

/** What the cheaper tier expected against what the dearer one said, with the line that the ladder goes by. */
export function calibrationChart(
  width: number,
  height: number,
  calibrations: readonly CalibrationReport[],
): string[] {
  const shown = calibrations.at(-1);
  if (!shown) {
    return [
      ...panel(width, height, 'Calibration'),
      text(16, 58, 'There was one tier only, so there is nothing to compare.', { className: 'muted' }),
    ];
  }
  const [from, to] = [toolName(shown.from), toolName(shown.to)];
  return [
    ...panel(width, height, `Calibration: how far ${from} can be trusted`),
    text(16, 46, `one point for each molecule and target that both have judged`, {
      size: 12,
      className: 'muted',
    }),
    group(PLOT.left, PLOT.top, scatter(shown, from, to)),
    group(PLOT.left + PLOT.size + 24, PLOT.top, words(calibrations, width - PLOT.left - PLOT.size - 24 - 16)),
  ];
}

function scatter({ pairs, line: fit }: CalibrationReport, from: string, to: string): string[] {
  const { size } = PLOT;
  const at = (value: number): number => value * size;
  const y = (value: number): number => size - value * size;
  const ticks = [0, 0.25, 0.5, 0.75, 1];
  return [
    ...ticks.flatMap((tick) => [
      line(at(tick), 0, at(tick), size, 'grid'),
      line(0, y(tick), size, y(tick), 'grid'),
      text(at(tick), size + 16, String(tick), { size: 11, className: 'muted', anchor: 'middle' }),
      text(-8, y(tick) + 4, String(tick), { size: 11, className: 'muted', anchor: 'end' }),
    ]),
    line(0, y(0), at(1), y(1), 'dashed'),
    ...pairs.map(({ cheap, dear }) => dot(at(cheap), y(dear), 3.5, 'point')),
    ...(fit === null ? [] : fitted(fit)),
    line(0, size, size, size, 'axis'),
    line(0, 0, 0, size, 'axis'),
    text(size / 2, size + 36, `score expected by ${from}`, { size: 12, anchor: 'middle' }),
    `<g transform="translate(-40 ${size / 2}) rotate(-90)">${text(0, 0, `score by ${to}`, { size: 12, anchor: 'middle' })}</g>`,
  ];
}

/** The part of the line that lies within the plot. */
function fitted({ intercept, slope }: { intercept: number; slope: number }): string[] {
  const { size } = PLOT;
  const inside = (x: number): boolean => {
    const y = intercept + slope * x;
    return x >= 0 && x <= 1 && y >= -1e-9 && y <= 1 + 1e-9;
  };
  const ends = [0, 1, -intercept / slope, (1 - intercept) / slope].filter(inside).toSorted((a, b) => a - b);
  const [from, to] = [ends[0], ends.at(-1)];
  if (from === undefined || to === undefined) return [];
  const y = (x: number): number => size - (intercept + slope * x) * size;
  return [line(from * size, y(from), to * size, y(to), 'simulation-line')];
}

/** The figures of each pair of neighbours, the dearest first. */
function words(calibrations: readonly CalibrationReport[], width: number): string[] {
  return calibrations.toReversed().map((one, i) =>
    group(0, i * 148, [
      text(0, 10, `${toolName(one.from)} → ${toolName(one.to)}`, { bold: true }),
      ...calibrationInWords(one)
        .flatMap((words) => wrap(words, width, 12))
        .map((words, at) => text(0, 32 + at * 18, words, { size: 12, className: 'muted' })),
    ]),
  );
}
