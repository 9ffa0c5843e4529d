import { expect, test } from 'vitest';
import { chartsOf } from '../../../dashboard/run-charts.ts';
import { rolloutFacts } from '../../../core/training/facts-of.ts';
import { summarize } from '../../../core/training/evaluation.ts';
import { someHeldOut, someStep } from '../../support/some-step.ts';

test('a measurement of which nothing could be judged is no success of 0 %', () => {
  const measured = [someHeldOut(3, 4), { ...someHeldOut(0, 0), meanReward: 0 }];
  const steps = measured.map((heldOut, i) => someStep({ step: i + 1, heldOut }));
  const chart = chartsOf(steps).find(({ heading }) => heading === 'Held-out success')!.chart;
  expect(chart.series[0]!.points).toEqual([[1, 0.75]]);
});

test('tokens a second are all that was sampled in these seconds: baselines and the evaluation took theirs', () => {
  const seconds = { rollout: 10, tool: 0, verification: 0, learner: 5, data: 0, orchestration: 0 };
  const circumstances = { ...someStep().circumstances, seconds };
  const rollout = { ...rolloutFacts(summarize([])), sampledTokens: 200, otherTokens: 50 };
  const steps = [
    someStep({ step: 1, rollout, circumstances }),
    someStep({ step: 2, rollout, circumstances, heldOut: { ...someHeldOut(1, 2), sampledTokens: 750 } }),
    // A warm start samples to measure only.
    someStep({ step: 3, circumstances, heldOut: { ...someHeldOut(1, 2), sampledTokens: 40 } }),
    someStep({ step: 4, circumstances }),
  ];
  const chart = chartsOf(steps).find(({ heading }) => heading.startsWith('Tokens sampled a second'))!.chart;
  expect(chart.series[0]!.points).toEqual([
    [1, 25],
    [2, 100],
    [3, 4],
    [4, null],
  ]);
});
