import { armName } from '../core/names.ts';
import { rate, wilson } from '../core/statistics/intervals.ts';
import type { ArmTally } from '../core/requests/verification.ts';
import { total } from '../core/training/stage-policy.ts';
import { figuresOf, sampledToLearn } from '../core/training/figures.ts';
import type { StepFacts } from '../core/training/step-facts.ts';
import { MOST_SERIES, shortNumber } from '../svg/charts.ts';
import type { LineChart, ChartMark, ChartSeries, Stretch } from '../svg/charts.ts';
import { CONFIDENCE } from './parts/numbers.tsx';

/** A chart of a run, by what it answers. */
export interface RunChart {
  heading: string;
  chart: Omit<LineChart, 'label'>;
}

const percent = (y: number): string => `${shortNumber(100 * y)} %`;

/** The charts of a run's steps that tell whether it learns and why not; all by the step of the run. */
export function chartsOf(steps: readonly StepFacts[]): RunChart[] {
  const figures = steps.map((step) => ({ step: step.step, of: figuresOf(step) }));
  const series = (name: string, key: string): ChartSeries => ({
    name,
    points: figures.map(({ step, of }) => [step, of[key] ?? null]),
  });
  /** Without the lines that no step knows anything of. */
  const known = (...all: ChartSeries[]): ChartSeries[] =>
    all.filter(({ points }) => points.some(([, y]) => y !== null && Number.isFinite(y)));
  /** Of what is measured every so often: a line from each time to the next. */
  const measured = (name: string, key: string): ChartSeries => ({
    name,
    points: figures.flatMap(({ step, of }) => (of[key] === undefined ? [] : [[step, of[key]] as const])),
  });
  const along = { stretches: stretchesOf(steps), marks: marksOf(steps) };
  const share = { format: percent, low: 0 };
  return [
    {
      heading: 'Reward',
      chart: {
        ...along,
        series: known(series('rolled out', 'reward/mean'), measured('held-out', 'reward/held-out')),
      },
    },
    {
      heading: 'Held-out success',
      chart: { ...along, ...share, high: 1, series: heldOutOf(steps) },
    },
    {
      heading: 'Entropy of the policy, nats a token',
      chart: { ...along, low: 0, series: known(series('of what it samples', 'policy/entropy')) },
    },
    ...ofDemonstrations(steps, 'Entropy on demonstrations, nats a token', 'learner/entropy'),
    {
      heading: 'KL, nats a token',
      chart: {
        ...along,
        low: 0,
        series: known(series('to the reference or the teachers', 'learner/kl')),
      },
    },
    {
      heading: 'Gap between the engines, nats',
      chart: {
        ...along,
        low: 0,
        series: known(
          series('largest', 'learner/logprob-gap-max'),
          series('mean', 'learner/logprob-gap-mean'),
        ),
      },
    },
    {
      heading: 'Gradient norm',
      chart: {
        ...along,
        low: 0,
        series: known({
          name: 'before clipping',
          points: steps.flatMap((step) => (isSupervised(step) ? [] : [[step.step, gradientNorm(step)]])),
        }),
      },
    },
    ...ofDemonstrations(steps, 'Gradient norm on demonstrations', 'learner/gradient-norm'),
    {
      heading: 'Length, tokens of an episode',
      chart: {
        ...along,
        low: 0,
        series: known(series('mean', 'episodes/tokens'), series('longest', 'episodes/longest')),
      },
    },
    {
      heading: 'Turns and calls of an episode',
      chart: {
        ...along,
        low: 0,
        series: known(series('turns', 'episodes/turns'), series('calls', 'calls/per-episode')),
      },
    },
    {
      heading: 'Cut off, and groups without advantages',
      chart: {
        ...along,
        ...share,
        series: known(
          series('truncated', 'episodes/truncated'),
          series('equal rewards', 'reward/equal-groups'),
        ),
      },
    },
    {
      heading: 'Failures',
      chart: {
        ...along,
        ...share,
        series: known(
          series('failed', 'outcomes/failed'),
          series('abstained', 'outcomes/abstained'),
          series('pending', 'outcomes/pending'),
          series('tool errors', 'calls/tool-error'),
          series('malformed calls', 'calls/malformed'),
          series('unknown tools', 'calls/unknown-tool'),
        ),
      },
    },
    {
      heading: 'Tokens sampled a second of rollout',
      chart: {
        ...along,
        low: 0,
        series: known({
          name: 'tokens/s',
          points: steps.map((step) => [step.step, tokensASecond(step)]),
        }),
      },
    },
    {
      heading: 'Seconds of a step by part, on top of each other',
      chart: {
        ...along,
        low: 0,
        stacked: true,
        series: (['rollout', 'learner', 'tool', 'verification', 'data', 'orchestration'] as const).map(
          (part) => series(part, `seconds/${part}`),
        ),
      },
    },
    ...ifKnown({
      heading: 'Self-play: rewards by role, and how new tasks were solved',
      chart: {
        ...along,
        series: known(
          series('proposer', 'self-play/proposer-reward'),
          series('solver', 'self-play/solver-reward'),
          series('success of new tasks', 'self-play/success-of-new-tasks'),
        ),
      },
    }),
    ...ifKnown({
      heading: 'Self-play: parts of the proposals',
      chart: {
        ...along,
        ...share,
        series: known(
          series('valid', 'self-play/valid'),
          series('duplicates', 'self-play/duplicates'),
          series('kinds', 'self-play/kinds'),
        ),
      },
    }),
    ...ifKnown({
      heading: 'Self-play: labels of the majority',
      chart: {
        ...along,
        ...share,
        series: known(
          series('accuracy', 'self-play/label-accuracy'),
          series('share of the majority', 'self-play/majority-share'),
          series('tasks without a label', 'self-play/without-label'),
          series('filtered tasks', 'self-play/filtered'),
        ),
      },
    }),
    ...ifKnown({
      heading: 'Self-play: tasks that are kept',
      chart: { ...along, low: 0, series: known(series('tasks', 'self-play/tasks')) },
    }),
    ...ifKnown({
      heading: 'Staleness of the samples, learner steps',
      chart: {
        ...along,
        low: 0,
        series: known(series('mean', 'staleness/mean'), series('oldest', 'staleness/most')),
      },
    }),
    ...ifKnown({
      heading: 'Gap to the sampler by staleness, nats',
      chart: {
        ...along,
        low: 0,
        series: agesOf(steps).map((age) => series(`${age} steps`, `learner/logprob-gap-at-staleness-${age}`)),
      },
    }),
    ...ifKnown({
      heading: 'Seconds of a step without work',
      chart: {
        ...along,
        low: 0,
        series: known(
          series('nothing rolled out', 'idle/rollout'),
          series('learner idle', 'idle/learner'),
          series('waited for the oldest', 'idle/waited-for-oldest'),
        ),
      },
    }),
  ];
}

/** How old the samples were that a learner step has told the gap of; each once, the youngest first. */
const agesOf = (steps: readonly StepFacts[]): number[] =>
  [
    ...new Set(
      steps.flatMap(({ learner }) =>
        (learner?.logprobGapByStaleness ?? []).map(({ staleness }) => staleness),
      ),
    ),
  ].toSorted((a, b) => a - b);

/** Nothing where no stage of the run has what a chart is of. */
const ifKnown = (one: RunChart): RunChart[] => (one.chart.series.length === 0 ? [] : [one]);

/** Nothing is sampled to learn from: its figures are of demonstrations, and of another size than those of a policy's samples. */
const isSupervised = ({ rollout }: StepFacts): boolean => rollout === null;

/** A figure of the learner in supervised steps, on an axis of its own; nothing of a run that has none. */
function ofDemonstrations(steps: readonly StepFacts[], heading: string, key: string): RunChart[] {
  const supervised = steps.filter(isSupervised);
  const points = supervised.map((step) => [step.step, figuresOf(step)[key] ?? null] as const);
  if (points.every(([, y]) => y === null)) return [];
  const along = { stretches: stretchesOf(supervised), marks: marksOf(supervised) };
  return [{ heading, chart: { ...along, low: 0, series: [{ name: 'on demonstrations', points }] } }];
}

/** Of all that was sampled in the seconds of rollout: baselines and the evaluation take theirs. */
function tokensASecond(step: StepFacts): number | null {
  const { seconds } = step.circumstances;
  const sampled = sampledToLearn(step) + (step.heldOut?.sampledTokens ?? 0);
  return sampled === 0 || seconds.rollout <= 0 ? null : sampled / seconds.rollout;
}

const gradientNorm = (step: StepFacts): number | null => figuresOf(step)['learner/gradient-norm'] ?? null;

/** Of all levels together, with the interval, and of each where there are several. */
function heldOutOf(steps: readonly StepFacts[]): ChartSeries[] {
  const looks = steps.flatMap(({ step, heldOut }) =>
    // Where nothing could be judged nothing is known.
    heldOut === null || total(heldOut.arms).trials === 0 ? [] : [{ step, arms: heldOut.arms }],
  );
  if (looks.length === 0) return [];
  const all: ChartSeries = {
    name: 'all',
    points: looks.map(({ step, arms }) => [step, rate(total(arms))]),
    band: looks.map(({ step, arms }) => {
      const { low, high } = wilson(total(arms), CONFIDENCE);
      return [step, low, high];
    }),
  };
  const names = [...new Set(looks.flatMap(({ arms }) => arms.map(({ arm }) => armName(arm))))];
  if (names.length < 2) return [all];
  const one = (arms: readonly ArmTally[], name: string): number | null => {
    const tally = arms.find(({ arm }) => armName(arm) === name);
    return tally === undefined || tally.trials === 0 ? null : rate(tally);
  };
  return [
    all,
    ...names.slice(0, MOST_SERIES - 1).map((name): ChartSeries => ({
      name,
      points: looks.map(({ step, arms }) => [step, one(arms, name)]),
    })),
  ];
}

/** The stages of a run, as far as they have steps. */
function stretchesOf(steps: readonly StepFacts[]): Stretch[] {
  const found: Stretch[] = [];
  for (const { stage, step } of steps) {
    const last = found.at(-1);
    if (last?.name === stage) last.to = step;
    else found.push({ name: stage, from: step, to: step });
  }
  return found;
}

function marksOf(steps: readonly StepFacts[]): ChartMark[] {
  return steps.flatMap(({ step, alarms, decision }) => [
    ...alarms.map(({ name }): ChartMark => ({ x: step, kind: 'alarm', label: `step ${step}: ${name}` })),
    ...(decision.kind === 'continue'
      ? []
      : [
          {
            x: step,
            kind: 'decision',
            label: `step ${step}: ${decision.kind}${decision.reason === null ? '' : `, ${decision.reason}`}`,
          } satisfies ChartMark,
        ]),
  ]);
}
