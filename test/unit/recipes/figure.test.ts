import { expect, test } from 'vitest';
import { noneSolved } from '../../../core/training/how-solved.ts';
import { figureOf, successOf } from '../../../recipes/figure.ts';
import type { Report } from '../../../recipes/figure.ts';

const [easy, hard] = [1, 2].map((level) => ({ environment: 'calculator', level })) as [Arm, Arm];
type Arm = { environment: string; level: number };

type Step = NonNullable<Report['lastStage']>[number];

const report = {
  arms: [
    { arm: easy, successes: 3, trials: 4 },
    { arm: hard, successes: 1, trials: 4 },
  ],
  conduct: [
    { ...noneSolved(), arm: easy, episodes: 4, tokens: 40, calls: 6, unknownTools: 0 },
    { ...noneSolved(), arm: hard, episodes: 4, tokens: 80, calls: 2, unknownTools: 2 },
  ],
};

test('tokens and calls are of an episode, unknown tools of all calls', () => {
  expect(figureOf(report, 'tokens')).toBe(15);
  expect(figureOf(report, 'calls')).toBe(1);
  expect(figureOf(report, 'unknown-tools')).toBe(0.25);
});

test('who calls nothing calls no unknown tool', () => {
  const silent = { ...report, conduct: [{ ...noneSolved(), arm: easy, episodes: 4, tokens: 40 }] };
  expect(figureOf(silent, 'unknown-tools')).toBe(0);
});

test('a report without a judged episode has no figure', () => {
  expect(() => figureOf({ arms: [] }, 'tokens')).toThrow(/no sampled tokens an episode/);
  const { unknownTools: _, ...earlier } = report.conduct[0]!;
  expect(() => figureOf({ ...report, conduct: [earlier] }, 'unknown-tools')).toThrow(/no share of calls/);
});

test('kinds are of all proposals of the last stage, and right labels of those that the verifier can judge', () => {
  const step = (kinds: number, right: number, checked: number) =>
    ({ rollout: { selfPlay: { proposals: 8, kinds, labels: { right, checked } } } }) as unknown as Step;
  const played = { ...report, lastStage: [step(6, 2, 4), step(2, 1, 2)] };
  expect(figureOf(played, 'kinds')).toBe(0.5);
  expect(figureOf(played, 'label-accuracy')).toBe(0.5);
  expect(figureOf({ ...report, lastStage: [step(0, 0, 0)] }, 'label-accuracy')).toBe(0);
  for (const name of ['kinds', 'label-accuracy'] as const)
    expect(() => figureOf(report, name)).toThrow(/its last stage has no self-play/);
});

test('success is of the levels that are named, or of all', () => {
  expect(successOf(report)).toBe(0.5);
  expect(successOf(report, [1])).toBe(0.75);
});
