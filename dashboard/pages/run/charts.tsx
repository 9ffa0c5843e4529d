import type { FC } from 'hono/jsx';
import { Curves } from '../../parts/chart.tsx';
import type { RunChart } from '../../run-charts.ts';

/** Those that have something to show; of a run that has just begun, or that only imitates, many have not. */
export const RunCharts: FC<{ charts: readonly RunChart[] }> = ({ charts }) => {
  const isEmpty = ({ chart: { series } }: RunChart): boolean =>
    series.every(({ points }) => points.every(([, y]) => y === null));
  const empty = charts.filter(isEmpty);
  return (
    <>
      <div class="figures">
        {charts
          .filter((one) => !isEmpty(one))
          .map(({ heading, chart }) => (
            <Curves heading={heading} chart={chart} />
          ))}
      </div>
      {empty.length > 0 && (
        <p class="note">No step has figures of: {empty.map(({ heading }) => heading).join('; ')}.</p>
      )}
    </>
  );
};
