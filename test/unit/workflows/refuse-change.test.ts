import { expect, test } from 'vitest';
import { nothingChanged } from '../../../core/run-change.ts';
import type { RunChange } from '../../../core/run-change.ts';
import type { CurriculumSpec } from '../../../core/spec.ts';
import { isNews, refuseChange } from '../../../workflows/refuse-change.ts';
import { stageSpec } from '../core/training/scripted-training.ts';

const rungs = ['is-number', 'near', 'exact'].map((verifier) => ({ verifier }));
const spec = {
  stages: [
    { kind: 'supervised', name: 'warm-start' },
    { ...stageSpec, name: 'rl' },
    { ...stageSpec, name: 'harder' },
  ],
  verification: { rungs },
} as unknown as CurriculumSpec;
const refused = (wanted: unknown, over: string[] = [], of: Partial<CurriculumSpec> = {}): string | null =>
  refuseChange(wanted, { ...spec, ...of }, new Set(over));

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
  [{ budgets: { exakt: { count: 3 } } }, 'there is no rung "exakt"; did you mean "exact"?'],
  [{ budgets: { __proto__: null, constructor: { count: 3 } } }, 'there is no rung "constructor"'],
  [{ budgets: { 'is-number': { count: 3 } } }, '"is-number" is the lowest rung'],
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
  expect(refuseChange({ budgets: { exact: { count: 1 } } }, without, new Set())).toContain(
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

test('a stage gets no more steps than it can still graduate in', () => {
  const stages = [
    {
      ...stageSpec,
      name: 'rl',
      maxSteps: 2,
      graduation: {
        ...stageSpec.graduation,
        tasks: 32,
        everySteps: 1,
        confidence: 0.9,
        successAtLeast: 0.85,
      },
    },
  ];
  const of = { stages } as Partial<CurriculumSpec>;
  expect(refused({ maxSteps: { rl: 3 } }, [], of)).toBeNull();
  expect(refused({ maxSteps: { rl: 300 } }, [], of)).toMatch(
    /^"rl" could not graduate any more: in 300 evaluations 32 tasks show at most 0\.7\d+, and its goal is 0\.85\./,
  );
});
