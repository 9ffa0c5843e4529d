import { describe, expect, test } from 'vitest';
import {
  algorithmSchema,
  computeAdvantages,
  planAlgorithm,
  refuseAlgorithm,
} from '../../../../core/algorithms/index.ts';
import type { Sample } from '../../../../core/algorithms/sample.ts';
import { sampling } from '../training/scripted-training.ts';
import { taskGroup } from '../../../support/task-group.ts';

const opd = (over: object) => algorithmSchema.parse({ kind: 'opd', teachers: [{ from: 'expert' }], ...over });
const plan = (over: object) => planAlgorithm(opd(over), sampling);
const sample: Sample = {
  reward: 0,
  success: false,
  tokens: [7, 8, 9],
  mask: [1, 0, 1],
  turns: [],
  before: [],
  samplerLogprobs: [-1, 0, -1],
  scores: {},
  truncated: false,
};
const group = (environment: string) => taskGroup([sample], { environment });
const byTask = [
  { from: 'mathematician', environments: ['calculator', 'proofs'] },
  { from: 'chemist@40', environments: ['molecules'] },
];

test('teachers are merged by what they weigh', () => {
  const teachers = [{ from: 'a', weight: 3 }, { from: 'b@7' }];
  expect(plan({ teachers })).toMatchObject({
    teachers: ['a', 'b@7'],
    movesAll: true,
    objective: { kind: 'distill', teacherWeights: [0.75, 0.25], divergence: { kind: 'reverse-kl' } },
  });
  const [entry] = computeAdvantages(opd({ teachers }), [group('calculator')]);
  expect(entry).toEqual({ group: 0, sample: 0, advantages: [1, 0, 1] });
});

test('or a task has the one of its environment', () => {
  const computed = computeAdvantages(
    opd({ teachers: byTask }),
    ['molecules', 'proofs', 'calculator'].map(group),
  );
  expect(computed.map(({ teacher }) => teacher)).toEqual([1, 0, 0]);
});

test('the divergence is one of three, with a mixture of its own where it has one', () => {
  expect(plan({ divergence: 'forward-kl' }).objective).toMatchObject({ divergence: { kind: 'forward-kl' } });
  expect(plan({ divergence: 'jsd' }).objective).toMatchObject({ divergence: { kind: 'jsd', beta: 0.5 } });
  expect(plan({ divergence: 'jsd', beta: 0.9 }).objective).toMatchObject({ divergence: { beta: 0.9 } });
});

describe('is refused', () => {
  const context = {
    lora: false,
    late: false,
    stored: false,
    lags: null,
    tree: false,
    relabels: false,
    turnRewards: false,
    maxCompletionTokens: 160,
    environments: ['calculator', 'proofs', 'molecules'],
  };
  test.each<[string, object, string, string]>([
    [
      'each of the teachers where there is one',
      { divergence: 'reverse-kl-each' },
      'divergence',
      'is reverse-kl where each task has one teacher',
    ],
    ['a mixture where there is none', { beta: 0.5 }, 'beta', 'does nothing for reverse-kl'],
    [
      'a teacher of all beside one of some',
      { teachers: [...byTask, { from: 'd' }] },
      'teachers',
      'either every',
    ],
    [
      'two of one task',
      { teachers: [...byTask, { ...byTask[1]!, from: 'd' }] },
      'teachers',
      'molecules has two teachers',
    ],
    ['one twice', { teachers: [...byTask, byTask[1]!] }, 'teachers', 'named twice'],
    ['a task without one', { teachers: [byTask[0]!] }, 'teachers', 'no teacher names molecules'],
    [
      'a task that there is not',
      { teachers: [...byTask, { from: 'd', environments: ['chess'] }] },
      'teachers',
      'draws no tasks of chess',
    ],
    [
      'a weight of a teacher alone',
      { teachers: [byTask[0]!, { ...byTask[1]!, weight: 2 }] },
      'teachers',
      'a weight does nothing',
    ],
  ])('%s', (_, over, field, message) => {
    expect(refuseAlgorithm(opd(over), context)).toMatchObject([
      { field, message: expect.stringContaining(message) as string },
    ]);
  });

  test('nothing of what goes together', () => {
    expect(refuseAlgorithm(opd({ teachers: byTask }), context)).toEqual([]);
    expect(refuseAlgorithm(opd({ divergence: 'jsd', beta: 0.1 }), context)).toEqual([]);
  });
});
