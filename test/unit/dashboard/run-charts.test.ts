import { expect, test } from 'vitest';
import { Curves } from '../../../dashboard/parts/chart.tsx';
import { Facts } from '../../../dashboard/pages/step/facts.tsx';
import { chartsOf } from '../../../dashboard/run-charts.ts';
import type { RunChart } from '../../../dashboard/run-charts.ts';
import { rolloutFacts } from '../../../core/training/facts-of.ts';
import { summarize } from '../../../core/training/evaluation.ts';
import type { StepFacts } from '../../../core/training/step-facts.ts';
import { someHeldOut, someStep } from '../../support/some-step.ts';

const legendOf = (html: string): string[] =>
  [...html.matchAll(/<li>(.*?)<\/li>/gs)].map(([, item]) => item!.replace(/<svg.*<\/svg>/s, ''));

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

const learner = (entropy: number, gradientNorm: number): StepFacts['learner'] =>
  ({ entropy, gradientNorm, kl: 0.02, logprobGapMax: 0.5 }) as NonNullable<StepFacts['learner']>;

/** A warm start of two rounds, and two steps of a policy that collapses. */
const collapsing: StepFacts[] = [
  ...[6, 5.8].map((entropy, i) =>
    someStep({ stage: 'warm-start', stageStep: i + 1, step: i + 1, learner: learner(entropy, 9) }),
  ),
  ...[0.05, 0.01].map((entropy, i) =>
    someStep({
      stageStep: i + 1,
      step: i + 3,
      learner: learner(entropy, 0.1),
      rollout: { ...rolloutFacts(summarize([])), sampledTokens: 100, sampledLogprob: -100 * entropy },
    }),
  ),
];
const chartNamed = (steps: StepFacts[], heading: RegExp): RunChart['chart'] | undefined =>
  chartsOf(steps).find((one) => heading.test(one.heading))?.chart;

test("the policy's entropy has an axis of its own, without that on demonstrations", () => {
  const policy = chartNamed(collapsing, /^Entropy of the policy/)!;
  expect(policy.series[0]!.points.filter(([, y]) => y !== null)).toEqual([
    [3, 0.05],
    [4, 0.01],
  ]);
  const demonstrated = chartNamed(collapsing, /^Entropy on demonstrations/)!;
  expect(demonstrated.series[0]!.points).toEqual([
    [1, 6],
    [2, 5.8],
  ]);
  // It ends where the supervised stage does.
  expect(demonstrated.stretches).toEqual([{ name: 'warm-start', from: 1, to: 2 }]);
  expect(chartNamed(collapsing.slice(2), /demonstrations/)).toBeUndefined();
});

test('gradients on demonstrations and of the policy, KL and the gap of the engines have an axis each', () => {
  const last = (heading: RegExp): unknown => chartNamed(collapsing, heading)!.series[0]!.points.at(-1);
  expect(last(/^Gradient norm$/)).toEqual([4, 0.1]);
  expect(last(/^Gradient norm on demonstrations/)).toEqual([2, 9]);
  for (const heading of [/^KL/, /^Gap/]) expect(chartNamed(collapsing, heading)!.series).toHaveLength(1);
});

test('a run that samples ahead has charts of its staleness and of the seconds without work, and no other has', () => {
  const heading = /^Staleness|without work/;
  expect(chartsOf(collapsing).filter((one) => heading.test(one.heading))).toEqual([]);
  const { circumstances } = someStep();
  const ahead = someStep({
    rollout: {
      ...rolloutFacts(summarize([])),
      sampledTokens: 40,
      staleness: 2,
      sampledByStaleness: [10, 0, 30],
    },
    circumstances: { ...circumstances, waitedForOldest: 2, idle: { rollout: 3, learner: 4 } },
  });
  const charts = chartsOf([ahead]).filter((one) => heading.test(one.heading));
  expect(charts.map(({ chart }) => chart.series.map(({ points }) => points[0]![1]))).toEqual([
    [1.5, 2],
    [3, 4, 2],
  ]);
  const page = (
    Facts({ run: 'r', facts: { ...ahead, answer: null }, evaluated: false }) as { toString: () => string }
  ).toString();
  expect(page).toContain('1.5 learner steps in the mean, 2 at most');
  expect(page).toMatch(/rollout 3\.0 s, learner 4\.0 s; 2\.0 s for the oldest group/);
});

test('a run whose learner tells the gap by staleness has a line for each, and no other has', () => {
  expect(chartNamed(collapsing, /by staleness/)).toBeUndefined();
  const gaps = [
    [{ staleness: 0, tokens: 8, mean: 0.25 }],
    [
      { staleness: 10, tokens: 4, mean: 0.5 },
      { staleness: 2, tokens: 4, mean: 0.375 },
    ],
  ];
  const steps = gaps.map((logprobGapByStaleness, i) =>
    someStep({ step: i + 1, learner: { ...learner(1, 1)!, logprobGapByStaleness } }),
  );
  expect(chartNamed(steps, /by staleness/)!.series).toEqual([
    {
      name: '0 steps',
      points: [
        [1, 0.25],
        [2, null],
      ],
    },
    {
      name: '2 steps',
      points: [
        [1, null],
        [2, 0.375],
      ],
    },
    {
      name: '10 steps',
      points: [
        [1, null],
        [2, 0.5],
      ],
    },
  ]);
});

test('a chart of one line has its name and its last value', () => {
  const reward = chartNamed([someStep({ heldOut: someHeldOut(3, 4) })], /^Reward$/)!;
  const html = (Curves({ heading: 'Reward', chart: reward }) as { toString: () => string }).toString();
  expect(legendOf(html)).toEqual(['held-out 0.75']);
});

test('a legend says where a number is from that is not of the last step', () => {
  const chart = {
    series: [
      { name: 'length', points: [[1, 4] as const, [2, 5] as const, [3, 6] as const] },
      { name: 'tool errors', points: [[1, 0.5] as const, [2, 1] as const, [3, null] as const] },
    ],
  };
  const html = (Curves({ heading: 'A chart', chart }) as { toString: () => string }).toString();
  expect(legendOf(html)).toEqual(['length 6', 'tool errors 1 (step 2)']);
});
