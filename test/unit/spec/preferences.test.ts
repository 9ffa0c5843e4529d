import { expect, test } from 'vitest';
import type { SupervisedStageSpec } from '../../../core/schema/stages/supervised.ts';
import { parseSpec } from '../../../spec/parse-spec.ts';
import { environments, problemsOf } from './problems-of.ts';

const tasks = [{ environment: 'calculator', levels: [1] }];
const specWith = (stage: object, model: object = { from: 'other' }) => ({
  model,
  reward: { components: [{ verifier: 'exact-match', role: 'outcome' }] },
  stages: [{ kind: 'supervised', name: 'prefer', tasks, graduation: { successAtLeast: 0.4 }, ...stage }],
  evaluation: { tasks, count: 100 },
});
const stageOf = (stage: object) =>
  parseSpec(specWith(stage), 'run', environments).stages[0] as SupervisedStageSpec;
const data = 'pairs.jsonl';

test('a stage that prefers has the loss and the learning rate of its method, and one that imitates has neither', () => {
  expect(stageOf({ data, algorithm: { kind: 'dpo' } })).toMatchObject({
    objective: { kind: 'dpo', variant: 'sigmoid', beta: 0.1, labelSmoothing: 0, temperature: 1, topK: 0 },
    optimizer: { learningRate: 3e-4 },
  });
  const kto = stageOf({ data, algorithm: { kind: 'kto' } });
  expect(kto).toMatchObject({ objective: { kind: 'kto', beta: 0.1 }, optimizer: { learningRate: 1e-4 } });
  const own = { data, algorithm: { kind: 'kto' }, optimizer: { learningRate: 1e-5 } };
  expect(stageOf(own).optimizer.learningRate).toBe(1e-5);
  const imitates = stageOf({ data });
  expect(imitates.optimizer.learningRate).toBe(1e-3);
  expect(imitates).not.toHaveProperty('objective');
});

test.each([
  [
    'without data',
    specWith({ algorithm: { kind: 'dpo' } }),
    'algorithm: dpo learns from preferences, and none are',
  ],
  ['first, from scratch', specWith({ data, algorithm: { kind: 'dpo' } }, {}), 'kind: a model from scratch'],
  [
    'with what makes pairs of samples',
    specWith({ data, algorithm: { kind: 'dpo', pairsPerTask: 2 } }),
    'algorithm.pairsPerTask: unknown field',
  ],
  [
    'by a method that samples',
    specWith({ data, algorithm: { kind: 'grpo' } }),
    'algorithm.kind: must be "dpo" or "kto"',
  ],
  [
    'ipo with smoothing',
    specWith({ data, algorithm: { kind: 'dpo', variant: 'ipo', labelSmoothing: 0.1 } }),
    'algorithm.labelSmoothing: does nothing for ipo',
  ],
  [
    'kto by which nothing counts',
    specWith({ data, algorithm: { kind: 'kto', desirableWeight: 0, undesirableWeight: 0 } }),
    'algorithm.desirableWeight: and undesirableWeight are both 0',
  ],
])('a stage that prefers %s is refused', (_, spec, why) => {
  expect(problemsOf(spec)).toEqual([expect.stringContaining(`stages[0].${why}`)]);
});
