import path from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { computeAdvantages } from '../../../core/algorithms/index.ts';
import { register } from '../../../core/extensions/registry.ts';
import type { RewardRule } from '../../../core/schema/reward-rules.ts';
import { ruleVerdicts } from '../../../core/reward/rules.ts';
import { defineDialect, defineMethod, defineRewardRule, perSample, planOf, z } from '../../../extend.ts';
import type { Sample, TaskGroup } from '../../../extend.ts';
import { parseSpec } from '../../../spec/parse-spec.ts';
import { loadExtensions } from '../../../workers/load-extensions.ts';
import { sample } from '../core/reward/samples.ts';
import { ROOT } from '../../support/markdown.ts';
import { tinySpec } from '../../support/tiny-spec.ts';
import type { Json } from '../../../core/json/json.ts';
import { openDialect } from '../../../engine/dialect/open-dialect.ts';
import { answerOf } from '../../../gateway/answer-of.ts';
import { renderingsOf, tokenizerOf } from '../engine/dialect/fixtures.ts';
import { environments, problemsOf } from './problems-of.ts';

const example = (name: string): string => path.join(ROOT, 'examples', name);
beforeAll(() =>
  loadExtensions(
    ['own-method.ts', 'own-rule.ts', 'own-method-with-loss.ts', 'own-dialect.ts'].map((name) =>
      example(name),
    ),
  ),
);

const [warmStart, rl] = tinySpec().stages;
const withMethod = (algorithm: object, rules: object[] = []) => {
  const spec = tinySpec();
  return { ...spec, reward: { ...spec.reward, rules }, stages: [warmStart, { ...rl, algorithm }] };
};
const median = { kind: 'own', name: 'median-baseline' };
const fewTurns = { kind: 'own', name: 'few-turns', role: 'penalty', weight: 0.1, options: { best: 2 } };

/** A group whose samples have these rewards, two tokens each, of which the second was not sampled. */
const groupOf = (...rewards: (number | null)[]): TaskGroup =>
  ({ samples: rewards.map((reward): Partial<Sample> => ({ reward, mask: [1, 0] })) }) as unknown as TaskGroup;

describe('a method of a project', () => {
  test('is planned by its options and their defaults, and its advantages are what it says', () => {
    const spec = parseSpec(withMethod({ ...median, options: { scale: 2, beta: 0.1 } }), 'run', environments);
    expect(spec.stages[1]).toMatchObject({
      plan: {
        reference: true,
        minibatch: 128,
        objective: { kind: 'clipped', beta: 0.1, clipRatioHigh: 0.28 },
      },
    });
    const found = computeAdvantages({ kind: 'own', name: 'median-baseline', options: { scale: 2 } }, [
      groupOf(1, null, 0, 0.5, 0.25),
    ]);
    // The median of four is the mean of the two in the middle: 0.375.
    expect(found).toEqual([
      { group: 0, sample: 0, advantages: [1.25, 0] },
      { group: 0, sample: 2, advantages: [-0.75, -0] },
      { group: 0, sample: 3, advantages: [0.25, 0] },
      { group: 0, sample: 4, advantages: [-0.25, -0] },
    ]);
  });

  test('that is not known here, or does not take what the spec says, is refused by name', () => {
    expect(problemsOf(withMethod({ kind: 'own', name: 'median-basline' }))).toEqual([
      expect.stringMatching(
        /^stages\[1\]\.algorithm\.name: no method called "median-basline" is known here; did you mean "median-baseline"\? Its module is named in GRADUS_EXTENSIONS/,
      ),
    ]);
    expect(problemsOf(withMethod({ ...median, options: { scale: -1, betta: 1 } }))).toEqual([
      expect.stringMatching(/^stages\[1\]\.algorithm\.options\.scale: Too small/),
      expect.stringMatching(/^stages\[1\]\.algorithm\.options: Unrecognized key: "betta"/),
    ]);
  });

  test('names a loss of its own, with the temperature and the top-k that tokens are sampled by', () => {
    const algorithm = { kind: 'own', name: 'scaled-reinforce', options: { strength: 3 } };
    const { stages } = parseSpec(withMethod(algorithm), 'run', environments);
    expect(stages[1]).toMatchObject({
      plan: {
        reference: false,
        objective: {
          kind: 'own',
          name: 'scaled-reinforce',
          options: { strength: 3, maxCompletionTokens: 40 },
          temperature: 1,
          topK: 0,
        },
      },
    });
  });

  const bad = (name: string, advantages: (groups: readonly TaskGroup[]) => unknown) => {
    const plan = () => planOf({ minibatch: 8, numIterations: 1 }, { kind: 'supervised' });
    const facts = { perGroup: true, offPolicy: false, readsTurns: false, plan };
    register(defineMethod({ name, options: z.strictObject({}), ...facts, advantages: advantages as never }));
    return () => computeAdvantages({ kind: 'own', name, options: {} }, [groupOf(0, 1)]);
  };

  test.each([
    ['nothing', () => undefined, 'gave no list'],
    ['no-number', (groups: readonly TaskGroup[]) => perSample(groups, () => NaN), 'is NaN at token 0'],
    ['short', () => [{ group: 0, sample: 0, advantages: [1] }], 'must have 2 numbers, one for each token'],
    [
      'observed',
      () => [{ group: 0, sample: 0, advantages: [1, 1], mask: [1, 1] }],
      '"mask" of sample 0 of group 0 is 1 at token 1: it is 1 or 0, and 0 where nothing was sampled',
    ],
    ['half', () => [{ group: 0, sample: 0, advantages: [1, 0], mask: [0.5, 0] }], 'is 0.5 at token 0'],
    ['nobody', () => [{ group: 0, sample: 2, advantages: [] }], 'was given no sample 2 of group 0'],
    [
      'thrown',
      () => {
        throw new Error('oh');
      },
      'advantages() threw: oh',
    ],
  ])('that gives %s is named, and nothing is trained on it', (name, advantages, why) => {
    const call = bad(name, advantages);
    expect(call).toThrow(expect.objectContaining({ boundary: 'learner', type: 'method', retryable: false }));
    expect(call).toThrow(why);
    expect(call).toThrow(`the method "${name}" of the project`);
  });
});

test.each([
  ['nothing', () => undefined, 'it'],
  [
    'no-objective',
    () => planOf(four, undefined as never, { reference: false, movesAll: false }),
    'objective',
  ],
  ['no-loss', () => planOf(four, { kind: 'sipo' } as never), 'objective.kind'],
  ['no-number', () => planOf(four, { kind: 'gspo', clipRatioLow: NaN } as never), 'objective'],
  ['no-minibatch', () => planOf({ ...four, minibatch: 0 }, { kind: 'supervised' }), 'minibatch'],
  ['half-epochs', () => planOf({ ...four, numIterations: 0.5 }, { kind: 'supervised' }), 'epochs'],
  ['no-score', () => planOf(four, { kind: 'supervised' }, { scores: ['vlaues'] as never }), 'scores.0'],
  ['more', () => ({ ...planOf(four, { kind: 'supervised' }), refils: 2 }), 'it'],
])('a method whose plan() gives %s is refused before anything is spent', (what, plan, where) => {
  const name = `plans-${what}`;
  const facts = { perGroup: true, offPolicy: false, readsTurns: false, advantages: () => [] };
  register(defineMethod({ name, options: z.strictObject({}), ...facts, plan: plan as never }));
  expect(() => parseSpec(withMethod({ kind: 'own', name }), 'run', environments)).toThrow(
    expect.objectContaining({
      boundary: 'learner',
      type: 'method',
      message: expect.stringMatching(
        `the method "${name}" of the project cannot be used: (its plan\\(\\) threw|"${where}" of its plan)`,
      ) as string,
    }),
  );
});
const four = { minibatch: 4, numIterations: 1 };

describe('a dialect of a project', () => {
  const qwen = tokenizerOf('qwen');
  const calculator = renderingsOf('qwen').tools['calculator']!.function;
  const open = (name: string, options: { [key: string]: Json } = {}) =>
    openDialect(qwen, { gradus_dialect: { name: 'own', own: { name, options } } }, [calculator]);

  test('writes prompts and results, in which no text of others is a tag or a special token', () => {
    const dialect = open('plain-calls');
    const prompt = dialect.promptTokens([{ role: 'user', content: '3+4 <|im_end|>' }]);
    expect(qwen.decode(prompt)).toContain(`${calculator.description}\nUSER 3+4 <|im_end|>\nPOLICY `);
    expect(prompt).not.toContain(qwen.idOf('<|im_end|>'));
    expect(qwen.decode(dialect.observationTokens({ text: '7' }, ''))).toBe('\nRESULT 7\nPOLICY ');
    const tokens = dialect.turnTokens({ call: { name: 'calculator', arguments: { expression: '3+4' } } });
    expect(qwen.decode(tokens)).toBe('call calculator {"expression":"3+4"}<|im_end|>');
    expect(tokens.at(-1)).toBe(dialect.stopTokens[0]);
  });

  test('is named by the spec with its options, and refused where it is not known', () => {
    const withDialect = (dialect: object) => ({ ...tinySpec(), model: { from: 'other', dialect } });
    const own = { name: 'plain-calls', options: { turnEnd: '</s>' } };
    expect(problemsOf(withDialect({ name: 'own', own }))).toEqual([]);
    expect(problemsOf(withDialect({ name: 'own' }))).toEqual([
      expect.stringMatching(/^model\.dialect\.own: is missing/),
    ]);
    expect(problemsOf(withDialect({ name: 'hermes', own }))).toEqual([
      expect.stringMatching(/^model\.dialect\.own: is for the name "own"/),
    ]);
    expect(problemsOf(withDialect({ name: 'own', own: { name: 'plain-call' } }))).toEqual([
      expect.stringMatching(
        /^model\.dialect\.own\.name: no dialect called "plain-call" is known here; did you mean/,
      ),
    ]);
    expect(problemsOf(withDialect({ name: 'own', own: { ...own, options: { turnend: '' } } }))).toEqual([
      expect.stringMatching(/^model\.dialect\.own\.options: Unrecognized key: "turnend"/),
    ]);
    expect(() => open('nobody')).toThrow('no dialect called "nobody" is known here');
    expect(() => open('plain-calls', { turnEnd: '<|nothing|>' })).toThrow(
      'turnEnds() names <|nothing|>, which the tokenizer has not',
    );
  });

  const usual = {
    options: z.strictObject({}),
    turnEnds: () => ['<|im_end|>'],
    prompt: () => ['?'],
    between: () => ['!'],
    parse: () => ({ kind: 'answer', answer: 'a' }) as const,
    write: () => ['a'],
  };
  test.each([
    ['no pieces', { prompt: () => 'text' }, 'its prompt() gave something else'],
    ['no text', { between: () => [{ text: 3 }] }, 'its between() gave 0'],
    ['no action', { parse: () => ({ kind: 'call', name: 'x' }) }, 'its parse() gave call'],
    ['an end that is none', { turnEnds: () => [] }, 'nothing ends its turns'],
    [
      'an error',
      {
        parse: () => {
          throw new Error('oh');
        },
      },
      'its parse() threw: oh',
    ],
  ])('that gives %s is named', (what, wrong, why) => {
    const name = `gives ${what}`;
    register(defineDialect({ name, ...usual, ...(wrong as object) }));
    const call = () => {
      const dialect = open(name);
      dialect.promptTokens([]);
      dialect.observationTokens({ text: '' }, '');
      dialect.parse('a');
    };
    expect(call).toThrow(expect.objectContaining({ boundary: 'policy', type: 'dialect', retryable: false }));
    expect(call).toThrow(`the dialect "${name}" of the project cannot be used: ${why}`);
  });

  test('may read several calls in a turn, of which a spec says how many it may make', () => {
    const calls = ['f', 'g', 'f'].map((name) => ({ name, arguments: {} }));
    register(defineDialect({ name: 'several', ...usual, parse: () => ({ kind: 'calls', calls }) }));
    const dialect = open('several');
    expect(dialect.parse('a')).toEqual({ kind: 'malformed', reason: 'one call a turn' });
    expect(dialect.parse('a', 2)).toEqual({ kind: 'malformed', reason: 'at most 2 calls a turn' });
    expect(dialect.parse('a', 3)).toEqual({ kind: 'calls', calls });
    // An agent makes its calls itself.
    const { tool_calls: told } = answerOf(dialect, { text: 'a', plain: 'a' }, 'turn');
    expect(told!.map((call) => call.function)).toEqual(calls);
    register(defineDialect({ name: 'one', ...usual, parse: () => ({ kind: 'calls', calls: [calls[0]!] }) }));
    expect(() => open('one').parse('a', 3)).toThrow('its parse() gave calls');
  });

  test('that cannot write a turn, or writes what reads as something else, is no demonstration', () => {
    register(defineDialect({ name: 'mute', ...usual, write: () => null }));
    register(defineDialect({ name: 'other', ...usual }));
    expect(open('mute').canWrite({ answer: 'a' })).toBe(false);
    expect(() => open('mute').turnTokens({ answer: 'a' })).toThrow('The dialect mute cannot write');
    expect(() => open('other').turnTokens({ answer: 'b' })).toThrow('would read as');
  });
});

test('a method and a rule that sort what they are given change nothing of whose it is', () => {
  const sorts = (name: string) => ({ name, options: z.strictObject({}) });
  const groups = [groupOf(0, 1)];
  register(
    defineMethod({
      ...sorts('sorts'),
      perGroup: true,
      offPolicy: false,
      readsTurns: false,
      plan: () => planOf({ minibatch: 8, numIterations: 1 }, { kind: 'supervised' }),
      advantages: ([group]) => {
        (group!.samples as Sample[]).sort((a, b) => b.reward! - a.reward!);
        return [];
      },
    }),
  );
  computeAdvantages({ kind: 'own', name: 'sorts', options: {} }, groups);
  expect(groups[0]!.samples.map(({ reward }) => reward)).toEqual([0, 1]);
  const samples = [sample({ sampled: 1 }), sample({ sampled: 2 })];
  register(
    defineRewardRule({
      ...sorts('sorts'),
      scores: (given) => (given as typeof samples).splice(0).map(() => ({ score: null, evidence: '' })),
    }),
  );
  const rule = { kind: 'own', name: 'sorts', role: 'bonus', options: {}, weight: 1, gatedBy: null } as const;
  ruleVerdicts([rule], samples);
  expect(samples.map(({ episode }) => episode.tokens.length)).toEqual([1, 2]);
});

describe('a rule of the reward of a project', () => {
  test('is named by the spec, and scores the samples of a task', () => {
    const { reward } = parseSpec(withMethod({}, [fewTurns]), 'run', environments);
    const [rule] = reward.rules!;
    const call: [string, string] = ['calculator', '1'];
    const verdicts = ruleVerdicts(
      [rule!],
      [sample({ calls: [call] }), sample({ calls: [call, call, call] })],
    );
    expect(verdicts).toEqual([
      [expect.objectContaining({ verifier: 'rule:own:few-turns', score: 1, evidence: '1 turns' })],
      [expect.objectContaining({ verifier: 'rule:own:few-turns', score: 0.5, evidence: '3 turns' })],
    ]);
  });

  test('that is not known, or lacks an option, is refused by name', () => {
    expect(problemsOf(withMethod({}, [{ ...fewTurns, name: 'turns' }]))).toEqual([
      expect.stringMatching(/^reward\.rules\[0\]\.name: no rule of the reward called "turns" is known here/),
    ]);
    expect(problemsOf(withMethod({}, [{ ...fewTurns, options: {} }]))).toEqual([
      expect.stringMatching(/^reward\.rules\[0\]\.options\.best: Invalid input/),
    ]);
  });

  test.each([
    [
      'too-much',
      () => [{ score: 1.5, evidence: '' }],
      'its score of sample 0 is 1.5: give a number in [0, 1], or null',
    ],
    ['none', () => [], 'must give one verdict for each of 1 samples'],
    [
      'throws',
      () => {
        throw new Error('oh');
      },
      'scores() threw: oh',
    ],
  ])('that gives %s is named', (name, scores, why) => {
    register(defineRewardRule({ name, options: z.strictObject({}), scores }));
    const rule = {
      kind: 'own',
      name,
      role: 'bonus',
      options: {},
      weight: 1,
      gatedBy: null,
    } satisfies RewardRule;
    const call = () => ruleVerdicts([rule], [sample()]);
    expect(call).toThrow(expect.objectContaining({ boundary: 'verifier', type: 'reward-rule' }));
    expect(call).toThrow(why);
  });
});

test('two of one name are refused, and a module that exports something else is named', async () => {
  const method = defineRewardRule({ name: 'few-turns', options: z.strictObject({}), scores: () => [] });
  expect(() => register(method)).toThrow('two modules bring a rule of the reward called "few-turns"');
  await expect(loadExtensions([example('environment.ts')])).rejects.toMatchObject({
    boundary: 'spec',
    type: 'shape',
    message: expect.stringContaining('is no extension: extends: Invalid') as string,
  });
  await expect(loadExtensions(['./nowhere.ts'])).rejects.toThrow(
    'Cannot load the extension module ./nowhere.ts: there is no such file',
  );
});
