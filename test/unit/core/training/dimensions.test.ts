import { describe, expect, test } from 'vitest';
import { addByArm, addHowSolved, noneSolved } from '../../../../core/training/how-solved.ts';
import { dimensionsOf, effortOf, samplesOf } from '../../../../core/training/dimensions.ts';
import { arm } from './scripted-training.ts';

const howSolved = {
  ...noneSolved(),
  episodes: 10,
  solved: 4,
  solvedTurns: 12,
  solvedCalls: 8,
  solvedTokens: 200,
  tokens: 600,
  compliant: 7,
  calls: 20,
  goodCalls: 15,
  multiStep: 5,
  multiStepSolved: 3,
  erred: 4,
  recovered: 1,
  tries: { '0/2': 2, '1/2': 2, '2/2': 1 },
};

describe('the six dimensions', () => {
  test('are parts of the episodes that had the occasion, and tokens for each success', () => {
    expect(dimensionsOf(howSolved)).toEqual({
      instruction: 0.7,
      tools: 0.75,
      multiStep: 0.6,
      selfCorrection: 0.25,
      // pass@1 0.4, pass@2 0.6: a third of what one try fails.
      exploration: expect.closeTo(1 / 3, 12),
      efficiency: 150,
    });
  });

  test('are null where there was no occasion', () => {
    expect(Object.values(dimensionsOf(noneSolved()))).toEqual([null, null, null, null, null, null]);
    expect(dimensionsOf({ ...howSolved, tries: { '1/1': 4, '0/1': 6 } }).exploration).toBeNull();
    expect(dimensionsOf({ ...howSolved, tries: { '2/2': 5 } }).exploration).toBeNull();
  });

  test('compare one try with all tries of the same tasks, where some samples could not be judged', () => {
    const { exploration } = dimensionsOf({ ...howSolved, tries: { ...howSolved.tries, '1/1': 50 } });
    expect(exploration).toBeCloseTo(1 / 3, 12);
  });
});

test('what a solved task took is a mean over solved tasks', () => {
  expect(effortOf(howSolved)).toEqual({ turns: 3, calls: 2, tokens: 50 });
  expect(effortOf(noneSolved())).toEqual({ turns: null, calls: null, tokens: null });
  expect(samplesOf(howSolved)).toBe(2);
});

test('conduct adds up, all of it and by arm', () => {
  const twice = addHowSolved([howSolved, howSolved]);
  expect(twice).toMatchObject({ episodes: 20, recovered: 2, tries: { '0/2': 4, '1/2': 4, '2/2': 2 } });
  const byArm = addByArm([
    { ...howSolved, arm: arm(1) },
    { ...noneSolved(), arm: arm(2) },
    { ...howSolved, arm: arm(1) },
  ]);
  expect(byArm.map(({ arm: { level }, episodes }) => [level, episodes])).toEqual([
    [1, 20],
    [2, 0],
  ]);
});

test('calls of unknown tools are told where they were counted everywhere, and not of less', () => {
  const counted = { ...howSolved, unknownTools: 3 };
  const { unknownTools: _, ...earlier } = howSolved;
  expect(addHowSolved([counted, counted])).toMatchObject({ calls: 40, unknownTools: 6 });
  expect(addHowSolved([counted, earlier])).not.toHaveProperty('unknownTools');
  expect(addHowSolved([counted, earlier])).toMatchObject({ calls: 40 });
});
