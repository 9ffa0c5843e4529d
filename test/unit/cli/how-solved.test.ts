import { expect, test } from 'vitest';
import { howOf, howTable, howTableOf } from '../../../cli/how-solved.ts';
import { samplesIn } from '../../../core/training/dimensions.ts';
import { measuredShare } from '../../../core/statistics/measured.ts';
import { noOutcomes } from '../../../core/episode/outcome.ts';
import type { EvaluationResult } from '../../../core/requests/evaluation.ts';
import { wilson } from '../../../core/statistics/intervals.ts';
import { noneSolved } from '../../../core/training/how-solved.ts';
import type { ArmHowSolved } from '../../../core/training/how-solved.ts';
import { arm } from '../core/training/scripted-training.ts';

const howSolved = (level: number, over: Partial<ArmHowSolved>): ArmHowSolved => ({
  ...noneSolved(),
  arm: arm(level),
  ...over,
});
const evaluation = (all: ArmHowSolved[]): EvaluationResult => ({
  arms: all.map((one) => ({ arm: one.arm, successes: one.solved, trials: one.episodes })),
  outcomes: noOutcomes(),
  meanReward: 0,
  sampledTokens: 0,
  spans: [],
  conduct: all,
});

const before = evaluation([
  howSolved(1, {
    episodes: 4,
    solved: 2,
    solvedTurns: 6,
    solvedTokens: 40,
    tokens: 100,
    compliant: 3,
    tries: { '1/2': 2 },
  }),
  howSolved(2, { episodes: 4, tokens: 60, tries: { '0/2': 2 } }),
]);
const after = evaluation([
  howSolved(1, {
    episodes: 4,
    solved: 4,
    solvedTurns: 8,
    solvedTokens: 40,
    tokens: 40,
    compliant: 4,
    tries: { '2/2': 2 },
  }),
  howSolved(2, {
    episodes: 4,
    solved: 1,
    solvedTurns: 3,
    solvedTokens: 30,
    tokens: 60,
    erred: 2,
    recovered: 1,
    tries: { '0/2': 1, '1/2': 1 },
  }),
]);

test('how tasks were solved stands level by level, before and after', () => {
  const table = howTable(before, after, 0.95)!;
  expect(table).toMatch(/before → after\tcalculator:1\tcalculator:2\tall/);
  expect(table).toMatch(/turns of a solved task\t3\.0 → 2\.0\t– → 3\.0\t3\.0 → 2\.2/);
  expect(table).toMatch(/instruction following\t75\.0 % → 100\.0 %/);
  expect(table).toMatch(/self-correction\t– → –\t– → 50\.0 %/);
  expect(table).toMatch(/efficiency, tokens a solved task\t50\.0 → 10\.0\t– → 60\.0\t80\.0 → 20\.0/);
  expect(table).toMatch(/\npass@2: 50\.0 % .* → 75\.0 %/);
  expect(table).toMatch(/\npass\^2: 0\.0 % .* → 50\.0 %/);
});

test('of two evaluations each table says in its heading whose it is', () => {
  expect(howTableOf(before.conduct!).split('\n')[0]).toMatch(/^how tasks were solved\t/);
  expect(howTableOf(after.conduct!, 'my-run: ').split('\n')[0]).toMatch(/^my-run: how tasks were solved\t/);
});

test('of one sample a task there is no pass@k, and of nothing that is told no table', () => {
  const once = evaluation([howSolved(1, { episodes: 2, solved: 1, tries: { '0/1': 1, '1/1': 1 } })]);
  expect(howTable(once, once, 0.95)).not.toContain('pass');
  const { conduct: _, ...silent } = once;
  expect(howTable(once, silent, 0.95)).toBeNull();
  expect(howTable(null, once, 0.95)).toMatch(/instruction following\t– → 0\.0 %/);
  expect(samplesIn(silent)).toBe(1);
});

test('as an object it has every k', () => {
  const how = howOf(after.conduct!, 0.95);
  expect(how.passes.map(({ k, atK, hatK }) => [k, atK!.mean, hatK!.mean])).toEqual([
    [1, 0.625, 0.625],
    [2, 0.75, 0.5],
  ]);
  expect(Object.keys(how.arms)).toEqual(['calculator:1', 'calculator:2']);
});

test('samples of a task make its interval no narrower than tasks do', () => {
  const { low, high, success, trials } = measuredShare({ successes: 30, trials: 40 }, 0.95, 4);
  expect({ low, high }).toEqual(wilson({ successes: 7.5, trials: 10 }, 0.95));
  expect([success, trials]).toEqual([0.75, 40]);
});
