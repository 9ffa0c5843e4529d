import { expect, test } from 'vitest';
import { Curves } from '../../../dashboard/parts/chart.tsx';
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

test('a legend says where a number is from that is not of the last step', () => {
  const chart = {
    series: [
      { name: 'length', points: [[1, 4] as const, [2, 5] as const, [3, 6] as const] },
      { name: 'tool errors', points: [[1, 0.5] as const, [2, 1] as const, [3, null] as const] },
    ],
  };
  const html = (Curves({ heading: 'A chart', chart }) as { toString: () => string }).toString();
  const legend = [...html.matchAll(/<li>(.*?)<\/li>/gs)].map(([, item]) =>
    item!.replace(/<svg.*<\/svg>/s, ''),
  );
  expect(legend).toEqual(['length 6', 'tool errors 1 (step 2)']);
});
