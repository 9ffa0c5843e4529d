import { expect, test } from 'vitest';
import { RUBRIC } from '../../../core/reward/self-judge.ts';
import { parseSpec } from '../../../spec/parse-spec.ts';
import { environments, problemsOf } from './problems-of.ts';

const tasks = [{ environment: 'calculator', levels: [1] }];
const rl = { name: 'rl', tasks, maxSteps: 10, graduation: { successAtLeast: 0.5 } };

const specWith = (judge: object, more: object = {}, reward: object = {}) => ({
  model: { from: 'base' },
  reward: { components: [{ verifier: 'exact-match', role: 'outcome' }], judge, ...reward },
  stages: [rl],
  evaluation: { tasks },
  ...more,
});
const problems = (...given: Parameters<typeof specWith>): string => problemsOf(specWith(...given)).join('\n');

test('what is left out is what the paper does', () => {
  expect(parseSpec(specWith({}), 'run', environments).reward.judge).toEqual({
    by: 'policy',
    rubric: RUBRIC,
    samples: 3,
    temperature: 0.7,
    maxTokens: 256,
  });
  expect(problems({ by: 'reference', rubric: 'One point for each right digit.', stages: ['rl'] })).toBe('');
});

test.each([
  [
    'servers',
    { policy: { kind: 'http', server: 'vllm', urls: ['http://127.0.0.1:8000'], folder: '/tmp/weights' } },
    'the decoder of rollout workers judges',
  ],
  ['a recording', { policy: { kind: 'recorded', run: 'other' } }, 'the decoder of rollout workers judges'],
  [
    'a ladder',
    {
      verification: {
        rungs: [
          { verifier: 'a', passAtLeast: 1 },
          { verifier: 'b', passAtLeast: 1 },
        ],
      },
    },
    'does not go with verification',
  ],
  [
    'stored episodes alone',
    {
      stages: [
        { ...rl, collect: { kind: 'stored', stage: 'other', run: 'other' }, algorithm: { kind: 'rft' } },
      ],
    },
    'no rl stage samples',
  ],
])('it does not go with %s', (_, more, why) => {
  expect(problems({}, more)).toContain(`reward.judge: ${why}`);
});

test('one judges, and of steps it says nothing', () => {
  const judging = {
    kind: 'reward',
    name: 'judge',
    tasks,
    episodes: { stage: 'rl' },
    graduation: { aucAtLeast: 0.8 },
  };
  expect(
    problems({}, { stages: [rl, judging, { ...rl, name: 'judged' }] }, { model: { stage: 'judge' } }),
  ).toContain('reward.judge: a reward model judges already');
  expect(problems({}, {}, { rules: [{ kind: 'process', verifier: 'exact-match', weight: 0.2 }] })).toContain(
    'scores no single steps',
  );
});

test('stages that it names must sample, once each', () => {
  expect(problems({ stages: ['rl', 'rl'] })).toContain('reward.judge.stages[1]: "rl" is named twice');
  expect(problems({ stages: ['rll'] })).toMatch(/reward\.judge\.stages\[0\]: "rll" is no rl stage.*"rl"/);
});

test('samples that say the same, and what leaves no room, are refused', () => {
  expect(problems({ temperature: 0 })).toContain('at temperature 0 all 3 say the same');
  expect(problems({ temperature: 0, samples: 1 })).toBe('');
  const scratch = {
    model: {},
    stages: [{ kind: 'supervised', name: 'warm-start', tasks, graduation: { successAtLeast: 0.5 } }, rl],
  };
  expect(problems({}, scratch)).toContain('reward.judge.maxTokens: the model holds 256 tokens');
  expect(problems({ rubric: ' ' })).toContain('reward.judge.rubric');
  expect(problems({ samples: 17 })).toContain('reward.judge.samples');
});
