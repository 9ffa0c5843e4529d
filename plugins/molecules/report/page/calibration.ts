import { calibrationInWords, toolName } from '../names.ts';
import type { CalibrationReport } from '../report.ts';
import { calibrationPlot } from '../../../../svg/calibration.ts';
import { group, panel, text, wrap } from '../../../../svg/elements.ts';

const PLOT = { left: 58, top: 64, size: 270 };

/** What the cheaper tier expected against what the higher one said, with the line that the ladder goes by. */
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
    group(
      PLOT.left,
      PLOT.top,
      calibrationPlot(
        {
          points: shown.pairs,
          line: shown.line,
          cheap: `score expected by ${from}`,
          dear: `score by ${to}`,
        },
        PLOT.size,
      ),
    ),
    group(PLOT.left + PLOT.size + 24, PLOT.top, words(calibrations, width - PLOT.left - PLOT.size - 24 - 16)),
  ];
}

/** The figures of each pair of neighbours, the highest first. */
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
