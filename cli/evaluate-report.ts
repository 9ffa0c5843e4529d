import { armName } from '../core/names.ts';
import { percent } from '../core/percent.ts';
import type { BeamsSpec } from '../core/schema/beams.ts';
import { measuredShare } from '../core/statistics/measured.ts';
import { passAtK, passHatK } from '../core/statistics/pass-at-k.ts';
import { samplesIn } from '../core/training/dimensions.ts';
import { differenceOf, doublings, successWithin } from '../core/training/evaluated.ts';
import type { Difference, SuccessWithin } from '../core/training/evaluated.ts';
import { addHowSolved } from '../core/training/how-solved.ts';
import { total } from '../core/training/stage-policy.ts';
import { textTable } from '../runs/text-table.ts';
import type { StoredEvaluation } from '../store/run/evaluation.ts';
import { summarizeEvaluation, unjudgedOf } from './curriculum-report.ts';
import { howTableOf } from './how-solved.ts';
import { interval } from './show-progress.ts';

/** Turns up to here are shown one by one. */
const FEW_TURNS = 12;
const FEWEST_TOKENS = 16;

const turnLimits = (most: number): number[] =>
  most <= FEW_TURNS ? Array.from({ length: most }, (_, i) => i + 1) : doublings(1, most);

const curvesOf = ({ spec, tasks }: StoredEvaluation, confidence: number) => ({
  withinTurns: successWithin(tasks, 'turns', turnLimits(spec.sampling.maxTurns), confidence),
  withinTokens: successWithin(
    tasks,
    'tokens',
    doublings(FEWEST_TOKENS, spec.sampling.maxCompletionTokens),
    confidence,
  ),
});

/** pass@k for each k up to the samples of a task. */
function passesOf({ spec, measured }: StoredEvaluation, confidence: number) {
  const { tries } = addHowSolved(measured.conduct ?? []);
  return Array.from({ length: spec.evaluation.samples }, (_, i) => i + 1).flatMap((k) => {
    const mean = passAtK(tries, k, confidence);
    return mean === null ? [] : [{ k, ...mean }];
  });
}

const armsOf = ({ spec }: StoredEvaluation): string[] => spec.evaluation.arms.map(armName);

function differencesOf(first: StoredEvaluation, second: StoredEvaluation, confidence: number) {
  const of = (tasks: StoredEvaluation['tasks']) => differenceOf(tasks, second.tasks, confidence);
  return {
    all: of(first.tasks),
    arms: Object.fromEntries(
      armsOf(first).map((name) => [name, of(first.tasks.filter((task) => armName(task) === name))]),
    ),
  };
}

/** An evaluation, and what another one has beside it, as an object for `--json`. */
export function summarizeEvaluations(
  first: StoredEvaluation,
  second: StoredEvaluation | null,
  confidence: number,
) {
  const of = (stored: StoredEvaluation) => {
    const { run, split, seed, sampling, beams, reward, verification, evaluation, policy, agent } =
      stored.spec;
    return {
      ...summarizeEvaluation(stored.measured, confidence),
      run,
      checkpoint: stored.checkpoint,
      split,
      seed,
      samples: evaluation.samples,
      sampling,
      beams: beams ?? null,
      reward,
      evaluateBy: verification?.evaluateBy ?? null,
      verdicts: stored.verdicts ?? null,
      policy: policy ?? null,
      agent: agent ?? null,
      meanReward: stored.measured.meanReward,
      passAtK: passesOf(stored, confidence),
      ...curvesOf(stored, confidence),
    };
  };
  return {
    confidence,
    evaluation: of(first),
    against: second && of(second),
    difference: second && differencesOf(first, second, confidence),
  };
}

/** The same as tables. `names` are what a person called the models. */
export function evaluationTables(
  first: StoredEvaluation,
  second: StoredEvaluation | null,
  names: readonly [string, string | null],
  confidence: number,
): string[] {
  const both = second === null ? [first] : [first, second];
  const shown = second === null ? [names[0]] : [names[0], names[1]!];
  const differences = second && differencesOf(first, second, confidence);
  const cell = ({ measured }: StoredEvaluation, name: string | null): string => {
    const arms = measured.arms.filter(({ arm }) => name === null || armName(arm) === name);
    if (arms.length === 0) return '–';
    const { success, trials, ...bounds } = measuredShare(total(arms), confidence, samplesIn(measured));
    return `${percent(success)}  [${interval(bounds)}] of ${trials}`;
  };
  const row = (label: string, name: string | null): string[] => [
    label,
    ...both.map((one) => cell(one, name)),
    ...(differences === null ? [] : [written(name === null ? differences.all : differences.arms[name]!)]),
  ];
  return [
    textTable(
      ['success', ...shown, ...(differences === null ? [] : ['difference'])],
      [...armsOf(first).map((name) => row(name, name)), row('all', null)],
    ),
    ...(differences?.all ? [solvedBy(differences.all, shown)] : []),
    ...both.flatMap((one, i) => linesOf(one, both.length > 1 ? `${shown[i]}: ` : '', confidence)),
  ];
}

const points = (share: number): string => `${share >= 0 ? '+' : '−'}${(100 * Math.abs(share)).toFixed(1)}`;

const written = (difference: Difference | null): string =>
  difference === null
    ? '–'
    : `${points(difference.mean)}  [${points(difference.low)} – ${points(difference.high)}] points, ${difference.n} tasks`;

const solvedBy = ({ first, second, equal }: Difference, [a, b]: readonly string[]): string =>
  `${a} solved ${first} tasks more often, ${b} ${second}; ${equal} were equal`;

const verdictsLine = (
  verifier: string,
  { asked, computed, seconds, usd }: NonNullable<StoredEvaluation['verdicts']>,
): string =>
  `verdicts of ${verifier}: ${asked} asked, of which ${computed} were computed for it, in ${seconds.toFixed(1)} s, for US$ ${usd.toFixed(2)}`;

const beamsInWords = ({ width, groups, diversity }: BeamsSpec): string =>
  groups === 1
    ? `turns are the best of ${width} beams`
    : `turns are the best of ${width} beams in ${groups} groups, λ = ${diversity}`;

function linesOf(stored: StoredEvaluation, name: string, confidence: number): string[] {
  const { measured } = stored;
  const { tries } = addHowSolved(measured.conduct ?? []);
  const most = samplesIn(measured);
  const ks = most < 2 ? [] : doublings(1, most);
  const passes = (what: string, of: typeof passAtK): string =>
    ks
      .flatMap((k) => {
        const mean = of(tries, k, confidence);
        return mean === null ? [] : [`${what}${k} ${percent(mean.mean)}  [${interval(mean)}]`];
      })
      .join('  ');
  const curve = (what: string, points: readonly SuccessWithin[]): string =>
    `${name}success within ${what}: ${points.map((one) => `${one.most} ${percent(one.mean)}`).join('  ')}`;
  const { withinTurns, withinTokens } = curvesOf(stored, confidence);
  const unjudged = unjudgedOf(measured);
  const { beams } = stored.spec;
  return [
    ...(beams ? [`${name}${beamsInWords(beams)}`] : []),
    ...(ks.length === 0 ? [] : [`${name}${passes('pass@', passAtK)}`, `${name}${passes('pass^', passHatK)}`]),
    curve('turns', withinTurns),
    curve('tokens', withinTokens),
    ...(measured.conduct ? [howTableOf(measured.conduct, name)] : []),
    ...(unjudged === null ? [] : [`${name}${unjudged}`]),
    ...(stored.verdicts
      ? [`${name}${verdictsLine(stored.spec.verification!.evaluateBy, stored.verdicts)}`]
      : []),
  ];
}
