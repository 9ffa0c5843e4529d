import { armName } from '../core/names.ts';
import type { EvaluationResult } from '../core/requests/evaluation.ts';
import { passAtK, passHatK } from '../core/statistics/pass-at-k.ts';
import { addHowSolved, noneSolved } from '../core/training/how-solved.ts';
import type { ArmHowSolved, HowSolved } from '../core/training/how-solved.ts';
import { dimensionsOf, effortOf, samplesOf, selfCorrected } from '../core/training/dimensions.ts';
import { rate } from '../core/statistics/intervals.ts';
import { percent } from '../core/percent.ts';
import { interval } from './show-progress.ts';
import { textTable } from '../runs/text-table.ts';

const few = (x: number | null): string => (x === null ? '–' : x.toFixed(1));
const share = (x: number | null): string => (x === null ? '–' : percent(x));

/** Rows of the table: what a figure is called, and how it is written. */
const ROWS: [string, (howSolved: HowSolved) => string][] = [
  ['turns of a solved task', (howSolved) => few(effortOf(howSolved).turns)],
  ['calls of a solved task', (howSolved) => few(effortOf(howSolved).calls)],
  ['sampled tokens of a solved task', (howSolved) => few(effortOf(howSolved).tokens)],
  [
    'solved after an error, of solved tasks',
    (howSolved) => (howSolved.solved ? percent(rate(selfCorrected(howSolved))) : '–'),
  ],
  ['instruction following', (howSolved) => share(dimensionsOf(howSolved).instruction)],
  ['tool use', (howSolved) => share(dimensionsOf(howSolved).tools)],
  ['multi-step', (howSolved) => share(dimensionsOf(howSolved).multiStep)],
  ['self-correction', (howSolved) => share(dimensionsOf(howSolved).selfCorrection)],
  ['exploration', (howSolved) => share(dimensionsOf(howSolved).exploration)],
  ['efficiency, tokens a solved task', (howSolved) => few(dimensionsOf(howSolved).efficiency)],
];

/** How tasks were solved before and after, level by level and in all; null where nothing is told of it. */
export function howTable(
  before: EvaluationResult | null,
  after: EvaluationResult,
  confidence: number,
): string | null {
  if (!after.conduct) return null;
  const was = before?.conduct ?? [];
  const columns = after.conduct.map((now): [string, HowSolved, HowSolved] => {
    const name = armName(now.arm);
    return [name, was.find(({ arm }) => armName(arm) === name) ?? noneSolved(), now];
  });
  const all: [string, HowSolved, HowSolved] = ['all', addHowSolved(was), addHowSolved(after.conduct)];
  const shown = columns.length > 1 ? [...columns, all] : [all];
  const table = textTable(
    ['before → after', ...shown.map(([name]) => name)],
    ROWS.map(([what, of]) => [what, ...shown.map(([, then, now]) => `${of(then)} → ${of(now)}`)]),
  );
  return `${table}${passLines(all[1], all[2], confidence)}`;
}

/** The same of one evaluation. `whose` stands before the heading, where there are two. */
export function howTableOf(howSolved: readonly ArmHowSolved[], whose = ''): string {
  const columns = howSolved.map((one): [string, HowSolved] => [armName(one.arm), one]);
  const shown: [string, HowSolved][] =
    columns.length === 1 ? columns : [...columns, ['all', addHowSolved(howSolved)]];
  return textTable(
    [`${whose}how tasks were solved`, ...shown.map(([name]) => name)],
    ROWS.map(([what, of]) => [what, ...shown.map(([, one]) => of(one))]),
  );
}

/** With several samples of each task: that one of k solves it, and that all of them do, as means over tasks. */
function passLines(before: HowSolved, after: HowSolved, confidence: number): string {
  const k = samplesOf(after);
  if (k < 2) return '';
  const line = (name: string, of: typeof passAtK): string => {
    const cells = [before, after].map(({ tries }) => {
      const mean = of(tries, k, confidence);
      return mean === null ? '–' : `${percent(mean.mean)}  [${interval(mean)}]`;
    });
    return `\n${name}: ${cells.join(' → ')}`;
  };
  return line(`pass@${k}`, passAtK) + line(`pass^${k}`, passHatK);
}

/** The same as an object, for `--json`: of all levels and of each. */
export function howOf(howSolved: readonly ArmHowSolved[], confidence: number) {
  const of = (one: HowSolved) => ({
    solved: effortOf(one),
    selfCorrected: selfCorrected(one),
    dimensions: dimensionsOf(one),
    passes: Array.from({ length: samplesOf(one) }, (_, i) => ({
      k: i + 1,
      atK: passAtK(one.tries, i + 1, confidence),
      hatK: passHatK(one.tries, i + 1, confidence),
    })),
  });
  return {
    ...of(addHowSolved(howSolved)),
    arms: Object.fromEntries(howSolved.map((one) => [armName(one.arm), of(one)])),
  };
}
