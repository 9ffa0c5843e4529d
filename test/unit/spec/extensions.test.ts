import path from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { computeAdvantages } from '../../../core/algorithms/index.ts';
import { register } from '../../../core/extensions/registry.ts';
import type { RewardRule } from '../../../core/schema/reward-rules.ts';
import { ruleVerdicts } from '../../../core/reward/rules.ts';
import { defineMethod, defineRewardRule, perSample, planOf, z } from '../../../extend.ts';
import type { Sample, TaskGroup } from '../../../extend.ts';
import { parseSpec } from '../../../spec/parse-spec.ts';
import { loadExtensions } from '../../../workers/load-extensions.ts';
import { sample } from '../core/reward/samples.ts';
import { ROOT } from '../../support/markdown.ts';
import { tinySpec } from '../../support/tiny-spec.ts';
import { environments, problemsOf } from './problems-of.ts';

const example = (name: string): string => path.join(ROOT, 'examples', name);
beforeAll(() =>
  loadExtensions(['own-method.ts', 'own-rule.ts', 'own-method-with-loss.ts'].map((name) => example(name))),
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
