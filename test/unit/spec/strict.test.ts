import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { parseStrictly } from '../../../core/schema/strict.ts';
import { problemsOf } from './problems-of.ts';

const tasks = [{ environment: 'calculator', levels: [1, 2] }];
const supervised = { kind: 'supervised', name: 'warm', tasks, graduation: { successAtLeast: 0.4 } };
const rl = { name: 'rl', tasks, maxSteps: 10, graduation: { successAtLeast: 0.5 } };

/** What is wrong with a spec of these stages. */
function problems(stages: unknown[], over: object = {}): string[] {
  const reward = { components: [{ verifier: 'exact-match', role: 'outcome' }] };
  return problemsOf({ reward, stages, evaluation: { tasks, count: 10 }, ...over });
}

test('stages of both kinds are taken, in any order after the first', () => {
  expect(problems([supervised, rl])).toEqual([]);
  expect(
    problems([supervised, { ...supervised, name: 'two' }, rl, { ...supervised, name: 'three' }]),
  ).toEqual([]);
  expect(problems([supervised, { ...rl, kind: 'rl' }])).toEqual([]);
});

describe('what is misspelt is named by its path, with the nearest valid name,', () => {
  test.each<[string, unknown[], string]>([
    [
      'in the section of a method',
      [supervised, { ...rl, algorithm: { clipRationLow: 0.1 } }],
      'stages[1].algorithm.clipRationLow: unknown field; did you mean "clipRatioLow"?',
    ],
    [
      'in the section of a method that is named',
      [supervised, { ...rl, algorithm: { kind: 'grpo', clipRationLow: 0.1 } }],
      'stages[1].algorithm.clipRationLow: unknown field; did you mean "clipRatioLow"?',
    ],
    [
      'in a record',
      [supervised, { ...rl, budgets: { dft: { cuont: 1 } } }],
      'stages[1].budgets.dft.cuont: unknown field; did you mean "count"?',
    ],
    [
      'where it is a kind',
      [{ ...supervised, kind: 'supervized' }, rl],
      'stages[0].kind: must be "rl" or "supervised" or "reward"; did you mean "supervised"?',
    ],
    [
      'in a kind',
      [{ ...supervised, minibach: 3 }, rl],
      'stages[0].minibach: unknown field; did you mean "minibatch"?',
    ],
    [
      'in a section of a kind, by the names of that kind alone',
      [{ ...supervised, graduation: { successAtLeast: 0.4, everyStep: 1 } }, rl],
      'stages[0].graduation.everyStep: unknown field; valid: successAtLeast, tasksPerLevel, unjudgedAtMost, enough',
    ],
    [
      'where it is a word among several',
      [supervised, { ...rl, collapse: { action: 'rolback' } }],
      'stages[1].collapse.action: must be "rollback" or "stop" or "ask"; did you mean "rollback"?',
    ],
  ])('%s', (_, stages, problem) => {
    expect(problems(stages)).toEqual([problem]);
  });
});

describe('what stands in the wrong place is refused with the right one:', () => {
  test.each<[string, unknown[], string]>([
    [
      'a kind that nobody knows',
      [{ ...supervised, kind: 'preference-by-telepathy' }, rl],
      'stages[0].kind: must be "rl" or "supervised" or "reward"',
    ],
    [
      'a kind that is no text',
      [{ ...supervised, kind: 7 }, rl],
      'stages[0].kind: must be "rl" or "supervised" or "reward"',
    ],
    [
      'a part of a step',
      [supervised, { ...rl, maxSteps: 1.5 }],
      'stages[1].maxSteps: expected a whole number, received 1.5',
    ],
    [
      'a length of a gradient that is none in float32',
      [supervised, { ...rl, optimizer: { maxGradientNorm: 1e-320 } }],
      'stages[1].optimizer.maxGradientNorm: must be at least 1e-9, for nothing is left of a gradient in float32: 0 leaves it alone',
    ],
    ['a stage that is none', [supervised, 3], 'stages[1]: expected object, received number'],
    [
      'a field of another kind',
      [supervised, { ...rl, maxRounds: 3 }],
      'stages[1].maxRounds: is a field of kind "supervised" or "reward", and this is of kind "rl"',
    ],
    [
      'a field of the kind that a stage is which does not say',
      [{ ...supervised, plateau: {} }, rl],
      'stages[0].plateau: is a field of kind "rl", and this is of kind "supervised"',
    ],
    [
      'a field of another kind, or one level too high',
      [supervised, { ...rl, minibatch: 32 }],
      'stages[1].minibatch: is a field of kind "supervised" or "reward", and this is of kind "rl"; did you mean "algorithm.minibatch"?',
    ],
    [
      'a field of another method',
      [supervised, { ...rl, algorithm: { lambda: 0.9 } }],
      'stages[1].algorithm.lambda: is a field of kind "ppo" or "starpo-s" or "vtrace", and this is of kind "grpo"',
    ],
    [
      'a field one level too high',
      [supervised, { ...rl, learningRate: 0.1 }],
      'stages[1].learningRate: unknown field; did you mean "optimizer.learningRate"?',
    ],
    [
      'a kind in place of the object that has it',
      [supervised, { ...rl, collect: 'pipelined' }],
      'stages[1].collect: expected object, received string: write { "kind": "pipelined" }',
    ],
    [
      'the beginning of a kind',
      [supervised, { ...rl, collect: { kind: 'async' } }],
      expect.stringMatching(/^stages\[1\]\.collect\.kind: must be .*; did you mean "asynchronous"\?$/),
    ],
    [
      'an object without its kind',
      [supervised, { ...rl, collect: { lag: 1 } }],
      expect.stringMatching(/^stages\[1\]\.collect\.kind: is missing: must be "/),
    ],
    [
      'a number beyond its bound',
      [supervised, { ...rl, collect: { kind: 'asynchronous', maxStaleness: -1 } }],
      'stages[1].collect.maxStaleness: must be at least 0, not -1',
    ],
    [
      'a key that is no name',
      [supervised, { ...rl, budgets: { '': { count: 1 } } }],
      'stages[1].budgets[""]: is no name for this: must have at least 1 character',
    ],
  ])('%s', (_, stages, problem) => {
    expect(problems(stages)).toEqual([problem]);
  });

  test('a field of a section at the top', () => {
    expect(problems([supervised, rl], { temperature: 0.7 })).toEqual([
      'temperature: unknown field; did you mean "sampling.temperature"?',
    ]);
  });

  test.each([
    ['diagnosis', { 'no-contrast': ['ask'] }, 'did you mean "stages[…].diagnosis"?'],
    // Of a kind of stage that is not the usual one, and like the name of a section.
    ['updatesPerRound', 30, 'did you mean "stages[…].updatesPerRound"?'],
    ['graduation', {}, 'did you mean "stages[…].graduation"?'],
    ['learningRate', 0.001, 'did you mean "stages[…].optimizer.learningRate"?'],
    ['importanceCap', 2, 'did you mean "stages[…].algorithm.importanceCap"?'],
    // Like the name of a section, and exactly one of a field below.
    ['rank', 8, 'did you mean "model.lora.rank"?'],
    // One letter from the name of a section, though a field below is called so.
    ['evaluations', {}, 'did you mean "evaluation"?'],
    // In every list: where it was to stand, nobody knows.
    ['name', 'x', 'valid: '],
  ])('a field of stages at the top: %s', (key, value, said) => {
    const [problem, ...more] = problems([supervised, rl], { [key]: value });
    expect(problem).toContain(`${key}: unknown field; ${said}`);
    expect(more).toEqual([]);
  });
});

test('the field that tells kinds apart is named where it is misspelt', () => {
  expect(problems([supervised, { ...rl, collect: { knid: 'tree', roots: 2 } }])).toEqual([
    'stages[1].collect.kind: is missing: must be "on-policy" or "pipelined" or "asynchronous" or "replay" or "stored" or "tree"',
    'stages[1].collect.knid: unknown field; did you mean "kind"?',
  ]);
});

test('what every object of JavaScript has is no field of any section', () => {
  const written = (key: string) => JSON.parse(`{ "${key}": 1 }`) as object;
  expect(problems([supervised, rl], written('toString'))[0]).toMatch(/^toString: unknown field; valid: /);
  expect(problems([supervised, { ...rl, ...written('constructor') }])[0]).toMatch(
    /^stages\[1\]\.constructor: unknown field; valid: /,
  );
  expect(problems([supervised, { ...rl, name: 'constructor' }])).toEqual([
    'stages[1].name: every object has a "constructor": choose another name',
  ]);
});

test('a refusal has room for what a person reads, whatever is wrong', () => {
  const many = Object.fromEntries(Array.from({ length: 10_000 }, (_, i) => [`${'x'.repeat(50)}${i}`, 1]));
  const lines = problems([supervised, rl], { ...many, ['y'.repeat(1_000_000)]: 1 });
  expect(lines).toHaveLength(51);
  expect(lines.at(-1)).toBe('and more');
  expect(problems([supervised, rl], { ['y'.repeat(1_000_000)]: 1 })[0]!.length).toBeLessThan(3000);
});

test('a union that no field tells apart names what is wrong with the branch that got furthest', () => {
  const union = z.strictObject({
    rule: z.union([
      z.strictObject({ kind: z.literal('fixed'), score: z.number() }),
      z.strictObject({ kind: z.literal('expected'), weight: z.number().optional() }),
    ]),
  });
  const read = (rule: unknown) => () => parseStrictly(union, { rule }, 'the rule');
  expect(read({ kind: 'expected', wieght: 1 })).toThrow('rule.wieght: unknown field; did you mean "weight"?');
  expect(read({ kind: 'fixed', score: 'x' })).toThrow('rule.score: expected number, received string');
});

test('in a union inside a union of a record the kinds that were written decide', () => {
  const inner = z.discriminatedUnion('by', [
    z.strictObject({ by: z.literal('rate').default('rate'), factor: z.number() }),
    z.strictObject({ by: z.literal('clock'), seconds: z.number() }),
  ]);
  const outer = z.discriminatedUnion('kind', [
    z.strictObject({ kind: z.literal('one'), rule: inner.optional() }),
    z.strictObject({ kind: z.literal('many'), rules: z.record(z.string(), inner) }),
  ]);
  const read = (written: unknown) => () => parseStrictly(z.array(outer), [written], 'the rules');
  expect(read({ kind: 'many', rules: { a: { by: 'clock', secnds: 1 } } })).toThrow(
    '[0].rules.a.seconds: is missing: expected number\n  [0].rules.a.secnds: unknown field; did you mean "seconds"?',
  );
  expect(read({ kind: 'one', rule: { factor: 1, seconds: 2 } })).toThrow(
    '[0].rule.seconds: is a field of by "clock", and this is of by "rate"',
  );
  expect(read({ kind: 'many', rules: { a: { by: 'clok', seconds: 1 } } })).toThrow(
    '[0].rules.a.by: must be "rate" or "clock"; did you mean "clock"?',
  );
});
