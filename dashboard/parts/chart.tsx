import { raw } from 'hono/html';
import type { Child, FC } from 'hono/jsx';
import { lineChart, lineSample, MOST_SERIES, shortNumber } from '../../svg/charts.ts';
import type { LineChart } from '../../svg/charts.ts';
import { Scroll } from './scroll.tsx';

/** A drawing of svg/, which has escaped what it was given, with a heading and the numbers behind it. */
export const Figure: FC<{ heading: string; svg: string; children?: Child; wide?: boolean }> = ({
  heading,
  svg,
  children,
  wide = false,
}) => (
  <figure class={wide ? 'figure wide' : 'figure'}>
    <figcaption>{heading}</figcaption>
    {wide ? <Scroll label={heading}>{raw(svg)}</Scroll> : raw(svg)}
    {children}
  </figure>
);

/** A line chart, and a legend of its lines with their last numbers, and where they are from if that is not the end. */
export const Curves: FC<{ heading: string; chart: Omit<LineChart, 'label'> & { label?: string } }> = ({
  heading,
  chart,
}) => {
  const { format = shortNumber, series, unit = 'step' } = chart;
  const shown = series.slice(0, MOST_SERIES);
  const last = shown.map(({ name, points }) => ({ name, at: points.findLast(([, y]) => y !== null) }));
  const ends = Math.max(...shown.map(({ points }) => points.at(-1)?.[0] ?? -Infinity));
  const label =
    chart.label ??
    `${heading}: ${last.map(({ name, at }) => (at ? `${name} ${format(at[1]!)} at ${unit} ${at[0]}` : `${name} nothing yet`)).join('; ')}`;
  return (
    <Figure heading={heading} svg={lineChart({ ...chart, label })}>
      <ul class="legend">
        {last.map(({ name, at }, i) => (
          <li>
            {raw(lineSample(i))}
            {name}
            {at && ` ${format(at[1]!)}`}
            {at && at[0] !== ends && ` (${unit} ${shortNumber(at[0])})`}
          </li>
        ))}
      </ul>
      {series.length > shown.length && <p class="note">{series.length - shown.length} more are not drawn</p>}
    </Figure>
  );
};
