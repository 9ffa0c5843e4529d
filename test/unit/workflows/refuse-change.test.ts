import { describe, expect, test } from 'vitest';
import { nothingChanged } from '../../../core/run-change.ts';
import type { RunChange } from '../../../core/run-change.ts';
import type { CurriculumSpec } from '../../../core/schema/curriculum-spec.ts';
import { isNews, refuseChange } from '../../../workflows/control/refuse-change.ts';
import type { RunToChange } from '../../../workflows/control/refuse-change.ts';
import { stageSpec } from '../core/training/scripted-training.ts';

const tiers = ['is-number', 'near', 'exact'].map((verifier) => ({ verifier }));
const spec = {
  stages: [
    { kind: 'supervised', name: 'warm-start' },
    { ...stageSpec, name: 'rl' },
    { ...stageSpec, name: 'harder' },
  ],
  verification: { rungs: tiers },
} as unknown as CurriculumSpec;
const refused = (
  wanted: unknown,
  over: string[] = [],
  of: Partial<CurriculumSpec> = {},
  standing: Partial<RunToChange> = {},
): string | null =>
  refuseChange(
    wanted,
    { ...spec, ...of },
    { over: new Set(over), changed: nothingChanged(), looked: null, ...standing },
  );

test.each([
  [{ budgets: { exact: { count: 0 } } }],
  [{ budgets: { near: { usd: null, seconds: 0.5, perStep: 2 } }, reason: 'the cluster is free' }],
  [{ maxSteps: { rl: 1, harder: 12 } }],
])('%j is a change', (wanted) => {
  expect(refused(wanted)).toBeNull();
});

test.each([
  [null, 'a change is an object, like'],
  [{}, 'this changes nothing'],
  [{ budgets: {}, maxSteps: {} }, 'this changes nothing'],
  [{ maxStep: { rl: 3 } }, 'a change has no field "maxStep"; did you mean "maxSteps"?'],
  [{ budgets: { exakt: { count: 3 } } }, 'there is no tier "exakt"; did you mean "exact"?'],
  [{ budgets: { __proto__: null, constructor: { count: 3 } } }, 'there is no tier "constructor"'],
  [{ budgets: { 'is-number': { count: 3 } } }, '"is-number" is the lowest tier'],
  [{ budgets: { exact: {} } }, 'budgets.exact: must name limits'],
  [{ budgets: { exact: { cuont: 3 } } }, 'budgets.exact has no limit "cuont"; did you mean "count"?'],
  [{ budgets: { exact: { toString: 3 } } }, 'budgets.exact has no limit "toString"'],
  [{ budgets: { exact: { count: 1.5 } } }, 'budgets.exact.count: must be a whole number'],
  [{ budgets: { exact: { usd: -1 } } }, 'budgets.exact.usd: must be a number from 0 on'],
  [{ budgets: { exact: { seconds: 1e12 } } }, 'budgets.exact.seconds: must be a number from 0 to 1000000000'],
  [{ budgets: { exact: { perStep: 0 } } }, 'budgets.exact.perStep: must be a number from 1 to'],
  [{ maxSteps: { rll: 3 } }, 'there is no stage "rll"; did you mean "rl"?'],
  [{ maxSteps: { rl: 0 } }, 'maxSteps.rl: must be a number from 1 to 1000000'],
  [{ maxSteps: { rl: '9' } }, 'maxSteps.rl: must be a whole number'],
  [{ maxSteps: { 'warm-start': 3 } }, '"warm-start" is a supervised stage'],
])('%j is none', (wanted, why) => {
  expect(refused(wanted)).toContain(why);
});

test('what is over, or was never there, cannot be changed', () => {
  expect(refused({ maxSteps: { rl: 9 } }, ['warm-start', 'rl'])).toBe('"rl" is over');
  expect(refused({ maxSteps: { harder: 9 } }, ['warm-start', 'rl'])).toBeNull();
  const all = ['warm-start', 'rl', 'harder'];
  expect(refused({ budgets: { exact: { count: 1 } } }, all)).toBe(
    'no stage is left that could spend anything',
  );
  const { verification: _, ...without } = spec;
  const standing = { over: new Set<string>(), changed: nothingChanged(), looked: null };
  expect(refuseChange({ budgets: { exact: { count: 1 } } }, without, standing)).toContain(
    'the run has no ladder',
  );
});

test('limits that hold already, in the spec or by what was changed, are no change', () => {
  const of = {
    stages: [{ ...stageSpec, name: 'rl', maxSteps: 20 }],
    verification: { rungs: [{ verifier: 'near' }, { verifier: 'exact', budget: { count: 9 } }] },
  } as unknown as CurriculumSpec;
  const changed = { newest: 1, budgets: { exact: { count: 5 } }, maxSteps: { rl: 30 } };
  const first = (wanted: RunChange) => isNews(wanted, of, nothingChanged());
  const then = (wanted: RunChange) => isNews(wanted, of, changed);
  for (const same of [
    { maxSteps: { rl: 20 } },
    { budgets: { exact: { count: 9 } } },
    { budgets: { exact: { usd: null } } },
  ])
    expect(first(same)).toBe(false);
  expect(first({ maxSteps: { rl: 20 }, budgets: { exact: { count: null } } })).toBe(true);
  expect(then({ maxSteps: { rl: 30 }, budgets: { exact: { count: 5 } } })).toBe(false);
  expect(then({ maxSteps: { rl: 20 } })).toBe(true);
  expect(then({ budgets: { exact: { count: 9 } } })).toBe(true);
});

test('a reason is a text that is not too long', () => {
  expect(refused({ maxSteps: { rl: 3 }, reason: 'x'.repeat(1001) })).toBe(
    'reason: must be a text of at most 1000 characters',
  );
});

describe('a stage gets no more steps than it can still graduate in', () => {
  const graduation = {
    ...stageSpec.graduation,
    tasks: 32,
    everySteps: 1,
    confidence: 0.9,
    successAtLeast: 0.85,
  };
  const of = { stages: [{ ...stageSpec, name: 'rl', maxSteps: 4, graduation }] } as Partial<CurriculumSpec>;
  const to = (rl: number, standing: Partial<RunToChange> = {}) =>
    refused({ maxSteps: { rl } }, [], of, standing);
  const after = (step: number, errorLeft: number, stage = 'rl', errorPart = 1 / 4) => ({
    looked: { stage, step, errorLeft, errorPart },
  });
  const changedTo = (rl: number) => ({ changed: { ...nothingChanged(), newest: 1, maxSteps: { rl } } });

  test('in all of its evaluations together', () => {
    // 0.85^32 is 0.0055, and the error of each of 18 looks is 0.0056.
    expect(to(18)).toBeNull();
    expect(to(19)).toMatch(
      /^"rl" could not graduate any more: in 19 evaluations 32 tasks show at most 0\.84\d+, and its goal is 0\.85\. Choose fewer steps$/,
    );
  });

  test('where evaluations have spent a part of its error, in those that are left with the rest of it', () => {
    // After three of four looks a quarter of the error is left: 0.025 for three looks and one more, and not for five.
    expect(to(6, after(3, 0.25))).toBeNull();
    expect(to(7, after(3, 0.25))).toMatch(
      /any more: in 4 evaluations with 25\.0 % of its error left 32 tasks show at most/,
    );
    // Where looks have had smaller parts before, no later one has a larger.
    expect(to(5, after(3, 0.25, 'rl', 0.05))).toMatch(/any more/);
    expect(to(18, after(3, 0.25, 'another'))).toBeNull();
  });

  test('and none where nothing is left of it, in words that say so', () => {
    expect(to(5, after(4, 0))).toBe(
      '"rl" could not graduate any more: its planned evaluations have been made, and its error is spent on them. Write another stage',
    );
  });

  test('it may be cut short whatever can be shown', () => {
    expect(to(3, after(2, 0))).toBeNull();
    expect(to(30, { ...changedTo(40), ...after(2, 0.5) })).toBeNull();
    expect(to(30, { ...changedTo(20), ...after(2, 0.5) })).toMatch(/any more/);
  });
});
