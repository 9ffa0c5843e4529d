import { dot, line, text } from './elements.ts';

/** What a cheaper verifier said against what a higher one said of the same, both in [0, 1]. */
export interface CalibrationPlot {
  points: readonly { cheap: number; dear: number }[];
  /** What the higher one is expected to say: intercept + slope × what the cheaper one said. */
  line: { intercept: number; slope: number } | null;
  /** What stands along the axes. */
  cheap: string;
  dear: string;
}

/** A square of `size` pixels with axes, whose labels lie up to 58 pixels left of it and 40 below. */
export function calibrationPlot({ points, line: fit, cheap, dear }: CalibrationPlot, size: number): string[] {
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
    ...points.map((point) => dot(at(point.cheap), y(point.dear), 3.5, 'point')),
    ...(fit === null ? [] : fitted(fit, size)),
    line(0, size, size, size, 'axis'),
    line(0, 0, 0, size, 'axis'),
    text(size / 2, size + 36, cheap, { size: 12, anchor: 'middle' }),
    `<g transform="translate(-40 ${size / 2}) rotate(-90)">${text(0, 0, dear, { size: 12, anchor: 'middle' })}</g>`,
  ];
}

/** The part of the line that lies within the plot. */
function fitted({ intercept, slope }: { intercept: number; slope: number }, size: number): string[] {
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
