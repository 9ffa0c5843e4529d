import { expect, test } from 'vitest';
import { chartsOf } from '../../../dashboard/run-charts.ts';
import { someHeldOut, someStep } from '../../support/some-step.ts';

test('a measurement of which nothing could be judged is no success of 0 %', () => {
  const measured = [someHeldOut(3, 4), { ...someHeldOut(0, 0), meanReward: 0 }];
  const steps = measured.map((heldOut, i) => someStep({ step: i + 1, heldOut }));
  const chart = chartsOf(steps).find(({ heading }) => heading === 'Held-out success')!.chart;
  expect(chart.series[0]!.points).toEqual([[1, 0.75]]);
});
