import { expect, test } from 'vitest';
import { changedReward, readSetting, rewardFields } from '../../../spec/reward-changes.ts';
import { parseSpec } from '../../../spec/parse-spec.ts';
import { builtInEnvironments } from '../../../environments/families/index.ts';
import { tinySpec } from '../../support/tiny-spec.ts';
import type { CurriculumSpec } from '../../../core/schema/curriculum-spec.ts';

const tiny = tinySpec();
const environments = new Map(builtInEnvironments.map((one) => [one.name, one]));
const spec = parseSpec(
  {
    ...tiny,
    reward: {
      components: [
        ...tiny.reward.components,
        { verifier: 'worst', role: 'bonus', weight: 0.1, gatedBy: 'format' },
      ],
      ensembles: [{ name: 'worst', verifiers: ['format', 'tool-shaping'] }],
      rules: [
        { kind: 'overlong', buffer: 10, weight: 0.1 },
        { kind: 'diversity', of: 'calls', weight: 0.1 },
      ],
    },
  },
  'run',
  environments,
) as unknown as CurriculumSpec;
const changed = (...set: string[]) => changedReward(spec, new Map(set.map(readSetting)));

test('every field of a reward that can be recomputed is told, as it is', () => {
  const fields = rewardFields(spec.reward).map(({ name, value }) => `${name}=${value}`);
  expect(fields).toEqual([
    'exact-match.weight=1',
    'format.weight=0.2',
    'format.role=bonus',
    'format.gatedBy=none',
    'tool-shaping.weight=0.2',
    'tool-shaping.role=penalty',
    'tool-shaping.gatedBy=none',
    'worst.weight=0.1',
    'worst.role=bonus',
    'worst.gatedBy=format',
    'worst.by=minimum',
    'worst.deviations=1',
    'rule:overlong.weight=0.1',
    'rule:overlong.gatedBy=none',
    'rule:overlong.limit=40',
    'rule:overlong.buffer=10',
    'rule:diversity.weight=0.1',
    'rule:diversity.gatedBy=exact-match',
    'truncated=train',
    'normalization=none',
  ]);
  // A form sends all of them.
  expect(changed(...fields)).toEqual({ reward: spec.reward, changes: [], dominates: false });
});

test('what is set is changed, and all else stays', () => {
  const { reward, changes } = changed(
    'format.weight=0.1',
    'format.role=penalty',
    'worst.gatedBy=none',
    'worst.by=mean-deviation',
    'rule:overlong.limit=30',
    'rule:diversity.weight=0',
    'truncated=mask',
    'exact-match.weight=1.0',
  );
  expect(changes).toEqual([
    { field: 'format.weight', from: '0.2', to: '0.1' },
    { field: 'format.role', from: 'bonus', to: 'penalty' },
    { field: 'worst.gatedBy', from: 'format', to: 'none' },
    { field: 'worst.by', from: 'minimum', to: 'mean-deviation' },
    { field: 'rule:overlong.limit', from: '40', to: '30' },
    { field: 'rule:diversity.weight', from: '0.1', to: '0' },
    { field: 'truncated', from: 'train', to: 'mask' },
  ]);
  const { components, ensembles, rules } = spec.reward;
  expect(reward).toEqual({
    ...spec.reward,
    components: [
      components[0],
      { ...components[1], weight: 0.1, role: 'penalty' },
      components[2],
      { ...components[3], gatedBy: null },
    ],
    ensembles: [{ ...ensembles![0], by: 'mean-deviation' }],
    // A rule has a weight, or is not there.
    rules: [{ ...rules![0], limit: 30 }],
    truncated: 'mask',
  });
});

test('what cannot be recomputed is refused by name, with what was meant', () => {
  expect(() => changed('fromat.weight=0.1', 'rule:diversity.of=answer')).toThrow(
    /fromat\.weight cannot be changed without asking a verifier again; did you mean "format\.weight"\?\n.*rule:diversity\.of cannot be changed/,
  );
  expect(() => changed('format.weight=much')).toThrow('format.weight must be a number, not "much"');
  expect(() => changed('format.role=outcome')).toThrow('must be one of bonus, penalty, not "outcome"');
  expect(() => changed('format.weight')).toThrow('sets nothing');
});

test('a reward that no spec may have is refused as a spec is', () => {
  expect(() => changed('format.weight=-1')).toThrow('reward');
  expect(() => changed('rule:overlong.buffer=50')).toThrow('is more than the limit of 40 tokens');
  expect(() => changed('format.gatedBy=format')).toThrow('must be one of none, exact-match');
  expect(() => changed('normalization=environment')).toThrow('does nothing where all stages divide');
});

test('a failure that could be worth more than a success is computed, and said', () => {
  expect(changed('format.weight=3').dominates).toBe(true);
  expect(changed('format.weight=0.3').dominates).toBe(false);
});
