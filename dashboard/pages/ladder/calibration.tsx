import type { FC } from 'hono/jsx';
import { decimals } from '../../../core/decimals.ts';
import type { LadderCalibration } from '../../../runs/ladder/ladder.ts';
import { calibrationPlot } from '../../../svg/calibration.ts';
import { figure, group } from '../../../svg/elements.ts';
import { Figure } from '../../parts/chart.tsx';
import { percent } from '../../../core/percent.ts';
import { amountText } from '../../parts/numbers.tsx';

const PLOT = { left: 58, top: 10, size: 250 };

export const Calibrated: FC<{ of: LadderCalibration }> = ({
  of: { from, to, points, count, known, line, deviation, holds },
}) => {
  const size: [number, number] = [PLOT.left + PLOT.size + 14, PLOT.top + PLOT.size + 46];
  const plot = calibrationPlot(
    { points, line, cheap: `score by ${from}`, dear: `score by ${to}` },
    PLOT.size,
  );
  const label = `${from} against ${to}: ${points.length} points${line === null ? '' : `, line ${lineInWords(from, to, line)}`}`;
  return (
    <Figure heading={`${from} → ${to}`} svg={figure(label, ...size, [group(PLOT.left, PLOT.top, plot)])}>
      <ul class="plain">
        <li>
          {known === null ? 'No pair has been counted yet.' : `${amountText(known.n, 'pair')} counted`}
          {count > 0 &&
            `, ${points.length} of them drawn${count > points.length ? ` (the newest of ${count})` : ''}`}
        </li>
        {line !== null && (
          <li>
            {lineInWords(from, to, line)}
            {deviation !== null && `, give or take ${deviation.toFixed(2)}`}
          </li>
        )}
        {holds !== null && (
          <li>
            of {amountText(holds.of, 'pass', 'passes')} of {from} {holds.held} held: the next one is expected
            to with {percent(holds.mean)}, give or take {percent(holds.deviation)}
          </li>
        )}
      </ul>
      <p class="note">Dashed: both give the same score.</p>
    </Figure>
  );
};

const lineInWords = (
  from: string,
  to: string,
  { intercept, slope }: { intercept: number; slope: number },
): string =>
  `${to} ≈ ${decimals(intercept, 2)} ${slope < 0 ? '−' : '+'} ${Math.abs(slope).toFixed(2)} · ${from}`;
