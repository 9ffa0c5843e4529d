import { describe, expect, test } from 'vitest';
import { parseEvaluate, readEvaluate } from '../../../spec/parse-evaluate.ts';
import { parseSpec } from '../../../spec/parse-spec.ts';
import type { CurriculumSpec } from '../../../core/schema/curriculum-spec.ts';
import { briefSpec } from '../../support/brief-spec.ts';
import { environments } from './problems-of.ts';

const tasks = [{ environment: 'calculator', levels: [1] }];
const base = parseSpec(briefSpec(), 'base', environments) as unknown as CurriculumSpec;
const parse = (written: object, of: CurriculumSpec | null = base) =>
  parseEvaluate({ checkpoint: 'base', tasks, ...written }, 'named', of, environments);

describe('what is not written', () => {
  test('is as in the run that the checkpoint is from', () => {
    const spec = parse({ sampling: { maxTurns: 5 } });
    expect(spec.sampling).toEqual({ ...base.sampling, maxTurns: 5 });
    expect(spec.reward).toEqual({
      components: [{ verifier: 'exact-match', role: 'outcome', weight: 1, gatedBy: null }],
      truncated: 'train',
    });
    expect(spec).toMatchObject({ run: 'named', split: 'test', seed: 0, stages: [] });
    expect(spec.evaluation).toEqual({
      arms: [{ environment: 'calculator', level: 1 }],
      count: 1000,
      samples: 1,
      confidence: 0.95,
    });
  });

  test('is all levels of an environment, and no more tasks than it has', () => {
    const levels = environments.get('calculator')!.levels;
    const { evaluation } = parse({ tasks: [{ environment: 'calculator' }] });
    expect(evaluation.arms.map(({ level }) => level)).toEqual(levels);
  });

  test('is refused where nothing says what success is', () => {
    expect(() => parse({}, null)).toThrow(
      /name the verifier that decides success.*calculator has exact-match/s,
    );
    const reward = { components: [{ verifier: 'exact-match', role: 'outcome' }] };
    expect(parse({ reward }, null).reward.components).toHaveLength(1);
  });
});

test('greedy sampling, which nothing could be trained on, can be measured', () => {
  expect(parse({ sampling: { topK: 1 } }).sampling.topK).toBe(1);
});

test.each([
  [{ checkpoint: undefined }, /checkpoint: is missing/],
  [{ tasks: [{ environment: 'calculater' }] }, /tasks\[0\]\.environment.*did you mean "calculator"/],
  [{ tasks: [{ environment: 'calculator', levels: [77] }] }, /has no level 77; valid/],
  [{ tasks: [...tasks, ...tasks] }, /named twice/],
  [{ count: 100_000, samples: 2 }, /samples: makes 200000 episodes/],
  [{ split: 'train' }, /split: must be "test" or "heldout"/],
  [{ reward: { components: [{ verifier: 'exact', role: 'outcome' }] } }, /no verifier "exact"/],
  [{ reward: { components: [{ verifier: 'exact-match', role: 'bonus' }] } }, /exactly one component/],
  [{ sampling: { topP: 0.9 } }, /sampling\.topP/],
  [{ dialect: { name: 'gradus', thinking: true } }, /dialect\.thinking: has no effect/],
  [{ tests: tasks }, /tests: unknown field; did you mean "tasks"/],
  [{ run: '../elsewhere' }, /run: /],
])('%j is refused, and says why', (written, why) => {
  expect(() => parse(written)).toThrow(why);
  expect(() => parse(written)).toThrow('the evaluation was refused before anything was spent');
});

test('a dry run may be asked about tasks alone', () => {
  expect(readEvaluate({ tasks, dryRun: true }).checkpoint).toBeUndefined();
  expect(() => readEvaluate(undefined)).toThrow('the evaluation was refused');
});
