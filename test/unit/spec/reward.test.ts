import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { composeReward } from '../../../core/episode/reward.ts';
import { ruleName } from '../../../core/reward/rules.ts';
import { parseSpec } from '../../../spec/parse-spec.ts';
import { environments, problemsOf } from './problems-of.ts';

const OUTCOME = { verifier: 'exact-match', role: 'outcome' };

function specWith(reward: object, more: { stage?: object; sampling?: object } = {}) {
  const tasks = [{ environment: 'calculator', levels: [1] }];
  return {
    model: { from: 'base' },
    reward: { components: [OUTCOME], ...reward },
    stages: [{ name: 'rl', tasks, maxSteps: 10, graduation: { successAtLeast: 0.5 }, ...more.stage }],
    evaluation: { tasks },
    ...(more.sampling && { sampling: more.sampling }),
  };
}
const parsed = (...of: Parameters<typeof specWith>) => parseSpec(specWith(...of), 'run', environments).reward;

const refusalOf = (...of: Parameters<typeof specWith>): string[] => problemsOf(specWith(...of));

describe('what a person leaves out of a reward', () => {
  test('stays out, so that a plain reward is as it was', () => {
    expect(Object.keys(parsed({}))).toEqual(['components', 'truncated']);
  });

  test('is filled in where something follows from it', () => {
    const rules = [
      { kind: 'overlong', buffer: 20, weight: 0.1 },
      { kind: 'diversity', weight: 0.1 },
      { kind: 'agreement', weight: 0.1 },
    ];
    const sampling = { maxCompletionTokens: 99 };
    expect(parsed({ rules }, { sampling }).rules).toMatchObject([
      { limit: 99, gatedBy: null },
      // Who is new and wrong has found nothing.
      { of: 'answer', by: 'count', gatedBy: 'exact-match' },
      { by: 'majority', gatedBy: null },
    ]);
    expect(parsed({ rules: [{ ...rules[1], gatedBy: null }] }).rules).toMatchObject([{ gatedBy: null }]);
    const ensembles = [{ name: 'both', verifiers: ['exact-match', 'boxed-math'], by: 'mean-deviation' }];
    const components = [{ verifier: 'both', role: 'outcome' }];
    expect(parsed({ components, ensembles }).ensembles).toMatchObject([{ deviations: 1 }]);
  });
});

test('of a misspelt verifier what names it rightly is told nothing, and what does not is told the right name', () => {
  const components = (gatedBy: string) => [
    { verifier: 'exact_match', role: 'outcome' },
    { verifier: 'format', role: 'bonus', weight: 0.1, gatedBy },
  ];
  const misspelt =
    'reward.components[0].verifier: environment "calculator" has no verifier "exact_match"; did you mean "exact-match"?';
  const rules = (gatedBy: string) => [
    { kind: 'confidence', weight: 0.1, gatedBy },
    { kind: 'process', verifier: 'exact-match', by: 'minimum', weight: 0.1 },
  ];
  const right = { components: components('exact-match'), rules: rules('exact-match') };
  expect(refusalOf(right)).toEqual([misspelt]);
  expect(refusalOf({ components: components('exactmatch'), rules: rules('exactmatch') })).toEqual([
    misspelt,
    'reward.components[1].gatedBy: "exactmatch" is no other component; did you mean "exact-match"?',
    'reward.rules[0].gatedBy: "exactmatch" is no component; did you mean "exact-match"?',
  ]);
});

test('of a misspelt ensemble nothing else is said than that', () => {
  const components = [{ verifier: 'bothh', role: 'outcome' }];
  const ensembles = [{ name: 'both', verifiers: ['exact-match', 'boxed-math'] }];
  expect(refusalOf({ components, ensembles })).toEqual([
    'reward.components[0].verifier: environment "calculator" has no verifier "bothh"; did you mean "both"?',
  ]);
});

describe('the outcome keeps at least half', () => {
  const bonus = (weight: number) => ({ verifier: 'format', role: 'bonus', weight });
  const penalty = (weight: number) => ({ verifier: 'tool-shaping', role: 'penalty', weight });
  const tooMuch =
    'reward: all other components and rules weigh 1.1, more than its 1: a failure could be worth more than a success; lower the weights, or set "shapingMayDominate": true';

  test('of bonuses, penalties and rules together', () => {
    expect(refusalOf({ components: [OUTCOME, bonus(0.7), penalty(0.3)] })).toEqual([]);
    expect(refusalOf({ components: [OUTCOME, bonus(0.7), penalty(0.4)] })).toEqual([tooMuch]);
    const rules = [{ kind: 'confidence', weight: 0.4 }];
    expect(refusalOf({ components: [OUTCOME, bonus(0.7)], rules })).toEqual([tooMuch]);
  });

  test('counting what each turn may be paid, for as many as there may be', () => {
    const components = [OUTCOME, { verifier: 'sub-goals', role: 'bonus', weight: 0 }];
    const rules = [{ kind: 'process', verifier: 'sub-goals', by: 'turns', weight: 0.11 }];
    expect(refusalOf({ components, rules }, { sampling: { maxTurns: 10 } })).toContain(tooMuch);
    expect(refusalOf({ components, rules }, { sampling: { maxTurns: 9 } })).not.toContain(tooMuch);
  });

  test('unless the spec says so by name, and only where it means something', () => {
    const components = [OUTCOME, bonus(2)];
    expect(refusalOf({ components, shapingMayDominate: true })).toEqual([]);
    expect(refusalOf({ components: [OUTCOME, bonus(0.5)], shapingMayDominate: true })).toEqual([
      'reward.shapingMayDominate: does nothing: the outcome weighs as much as all the others together',
    ]);
  });

  test('and may only be measured where something else teaches, by name', () => {
    const components = [{ ...OUTCOME, weight: 0 }];
    const rules = [{ kind: 'agreement', weight: 1 }];
    expect(refusalOf({ components, rules, shapingMayDominate: true })).toEqual([]);
    expect(refusalOf({ components, rules })).toEqual([
      'reward.components[0].weight: the outcome would be worth nothing: give it a weight above 0',
    ]);
  });

  test('so that a success is worth no less than a failure, whatever verifiers and rules say', () => {
    const score = fc.option(fc.double({ min: 0, max: 1, noNaN: true }), { nil: null });
    const weight = fc.double({ min: 0.01, max: 0.25, noNaN: true });
    const gate = fc.constantFrom(null, 'exact-match');
    fc.assert(
      fc.property(
        fc.tuple(weight, weight, weight, weight),
        fc.tuple(gate, gate),
        fc.array(score, { minLength: 8, maxLength: 8 }),
        ([b, p, d, l], [gateOfBonus, gateOfLength], said) => {
          const reward = parsed({
            components: [OUTCOME, { ...bonus(b), gatedBy: gateOfBonus }, penalty(p)],
            rules: [
              { kind: 'diversity', weight: d, gatedBy: null },
              { kind: 'overlong', buffer: 10, weight: l, gatedBy: gateOfLength },
            ],
          });
          const names = [
            ...reward.components.slice(1).map(({ verifier }) => verifier),
            ...reward.rules!.map(ruleName),
          ];
          const earned = (outcome: number, scores: readonly (number | null)[]): number => {
            const verdicts = ['exact-match', ...names].map((verifier, i) => ({
              verifier,
              version: '1',
              score: i === 0 ? outcome : scores[i - 1]!,
            }));
            const composed = composeReward(reward, verdicts);
            return composed.kind === 'scored' ? composed.reward : NaN;
          };
          expect(earned(1, said.slice(0, 4))).toBeGreaterThanOrEqual(earned(0, said.slice(4)) - 1e-9);
        },
      ),
    );
  });
});

describe('a reward is refused, with the path and what to write,', () => {
  const rule = (one: object) => ({ rules: [{ weight: 0.1, ...one }] });
  const both = { name: 'both', verifiers: ['exact-match', 'boxed-math'] };
  const asOutcome = { components: [{ verifier: 'both', role: 'outcome' }] };
  test.each<[string, object, string]>([
    [
      'for a rule twice',
      {
        rules: [
          { kind: 'confidence', weight: 0.1 },
          { kind: 'confidence', weight: 0.2 },
        ],
      },
      'reward.rules[1].kind: rule:confidence is already a rule',
    ],
    [
      'for a gate that is no component',
      rule({ kind: 'confidence', gatedBy: 'exact-mach' }),
      'reward.rules[0].gatedBy: "exact-mach" is no component; did you mean "exact-match"?',
    ],
    [
      'for steps of what is no component',
      rule({ kind: 'process', verifier: 'sub-goals' }),
      'reward.rules[0].verifier: "sub-goals" is no component of one verifier; valid: exact-match; give it a weight of 0 if it should only score steps',
    ],
    [
      'for a length that falls before it begins',
      rule({ kind: 'linear-length', target: 50, limit: 40 }),
      'reward.rules[0].limit: must be above target = 50',
    ],
    [
      'for a length that no episode has',
      rule({ kind: 'linear-length', target: 160, limit: 200 }),
      'reward.rules[0].target: is never reached: an episode has at most sampling.maxCompletionTokens = 160 tokens',
    ],
    [
      'for a limit that no episode comes near',
      rule({ kind: 'overlong', limit: 300, buffer: 20 }),
      'reward.rules[0].limit: is never reached: an episode has at most sampling.maxCompletionTokens = 160 tokens',
    ],
    [
      'for a buffer that begins before the episode',
      rule({ kind: 'overlong', buffer: 161 }),
      'reward.rules[0].buffer: is more than the limit of 160 tokens',
    ],
    [
      'for a field of another rule',
      rule({ kind: 'overlong', buffer: 16, target: 3 }),
      'reward.rules[0].target: is a field of kind "linear-length" or "sigmoid-length", and this is of kind "overlong"',
    ],
    [
      'for a rule without a weight',
      { rules: [{ kind: 'confidence', weight: 0 }] },
      'reward.rules[0].weight: must be more than 0, not 0',
    ],
    [
      'for an ensemble that nobody asks',
      { ensembles: [both] },
      'reward.ensembles[0].name: does nothing unless reward.components has { "verifier": "both" }',
    ],
    [
      'for an ensemble with the name of a verifier',
      { ensembles: [{ ...both, name: 'exact-match' }] },
      'reward.ensembles[0].name: "exact-match" is the name of a verifier; choose another',
    ],
    [
      'for a member that the environment lacks',
      { ...asOutcome, ensembles: [{ ...both, verifiers: ['exact-match', 'boxed-maths'] }] },
      'reward.ensembles[0].verifiers[1]: environment "calculator" has no fast verifier "boxed-maths"; did you mean "boxed-math"?',
    ],
    [
      'for a member twice',
      { ...asOutcome, ensembles: [{ ...both, verifiers: ['exact-match', 'exact-match'] }] },
      'reward.ensembles[0].verifiers[1]: "exact-match" is named twice',
    ],
    [
      'for deviations of a minimum',
      { ...asOutcome, ensembles: [{ ...both, deviations: 2 }] },
      'reward.ensembles[0].deviations: does nothing for minimum; mean-deviation reads it',
    ],
    [
      'for a normalization that is divided away',
      { normalization: 'environment' },
      'reward.normalization: does nothing where all stages divide by the deviation of the group, or only compare which sample is better: leave it out, or set algorithm.scaleRewards to "none"',
    ],
  ])('%s', (_, reward, problem) => {
    expect(refusalOf(reward)).toEqual([problem]);
  });

  test('for more samples than are compared with each other', () => {
    const reward = rule({ kind: 'diversity', by: 'similarity' });
    expect(refusalOf(reward, { stage: { numGenerations: 257 } })).toEqual([
      'reward.rules[0].by: compares at most 256 samples of a task with each other: choose count',
    ]);
    expect(refusalOf(reward, { stage: { numGenerations: 256 } })).toEqual([]);
  });
});

test.each(['dapo', 'gspo', 'cispo', 'dpo', 'kto', 'rft', 'hindsight'])(
  'a normalization is refused where %s alone reads rewards, on whatever scale',
  (kind) => {
    expect(refusalOf({ normalization: 'environment' }, { stage: { algorithm: { kind } } })).toEqual([
      expect.stringMatching(/^reward\.normalization: does nothing/),
    ]);
  },
);

test.each(['rloo', 'ppo', 'gigpo', 'remax', 'reinforce++'])(
  'a normalization is taken where %s reads rewards',
  (kind) => {
    expect(refusalOf({ normalization: 'environment' }, { stage: { algorithm: { kind } } })).toEqual([]);
  },
);

test('rewards are normalized where that changes what is learnt', () => {
  const stage = { algorithm: { scaleRewards: 'none' } };
  expect(parsed({ normalization: 'environment' }, { stage }).normalization).toBe('environment');
});
