import { expect, test } from 'vitest';
import { learnedTierOf, rewardSchema } from '../../../core/schema/reward.ts';
import { parseSpec } from '../../../spec/parse-spec.ts';
import { environments, problemsOf } from './problems-of.ts';

const tasks = [{ environment: 'calculator', levels: [1] }];
const rl = { name: 'rl', tasks, maxSteps: 10, graduation: { successAtLeast: 0.5 } };
const judge = {
  kind: 'reward',
  name: 'judge',
  tasks,
  episodes: { stage: 'rl' },
  graduation: { aucAtLeast: 0.8 },
};
const judged = { ...rl, name: 'judged' };

const specWith = (stages: object[], model: object | undefined = { stage: 'judge' }, more: object = {}) => ({
  model: { from: 'base' },
  reward: { components: [{ verifier: 'exact-match', role: 'outcome' }], ...(model && { model }) },
  stages,
  evaluation: { tasks },
  ...more,
});

test('a reward stage learns from an earlier stage, and later ones are judged by it', () => {
  const { stages, reward } = parseSpec(specWith([rl, judge, judged]), 'run', environments);
  expect(stages[1]).toMatchObject({
    kind: 'reward',
    labels: 'outcomes',
    models: 1,
    pairsPerTask: 4,
    heldOut: 0.2,
    optimizer: { learningRate: 0.001 },
    arms: [{ environment: 'calculator', level: 1 }],
  });
  expect(reward.model).toEqual({ stage: 'judge', by: 'mean-deviation', deviations: 1 });
});

const onLadder = (model: object, judging: object = { ...judge, models: 2 }) => ({
  ...specWith([rl, judging, judged]),
  reward: { components: [{ verifier: 'ladder', role: 'outcome' }], model },
});

test('with verification it is a tier, which escalates what it is not sure of', () => {
  const verification = {
    rungs: [
      { verifier: 'exact-match', passAtLeast: 1 },
      { verifier: 'exact-match', passAtLeast: 1 },
    ],
  };
  const of = (model: object, judging?: object) =>
    problemsOf({ ...onLadder(model, judging), verification }).filter((problem) => problem.includes('model'));
  expect(of({ stage: 'judge' })).toEqual([]);
  expect(of({ stage: 'judge' }, judge).join('\n')).toContain('one model disagrees with nobody');
  expect(problemsOf(specWith([rl, judge, judged], { stage: 'judge', escalate: {} })).join('\n')).toContain(
    'does nothing without verification',
  );
  const written = rewardSchema.parse(onLadder({ stage: 'judge', escalate: { audit: 0.2 } }).reward).model!;
  expect(learnedTierOf(written, 3)).toEqual({
    stage: 'judge',
    uncertaintyAtLeast: 0.4,
    audit: 0.2,
    seed: 3,
  });
});

test('the ladder knows of which other run its model has learnt', () => {
  const molecules = [{ environment: 'molecules', levels: [1] }];
  const learntFrom = (episodes: object) => {
    const stages = [rl, { ...judge, models: 2, episodes }, judged].map((one) => ({
      ...one,
      tasks: molecules,
    }));
    const rungs = [
      { verifier: 'molecule', passAtLeast: 1 },
      { verifier: 'xtb', passAtLeast: 0.5 },
    ];
    const spec = { ...onLadder({ stage: 'judge' }), stages, verification: { rungs } };
    const { verification } = parseSpec({ ...spec, evaluation: { tasks: molecules } }, 'run', environments);
    return verification!.learned!.learntFrom;
  };
  expect(learntFrom({ stage: 'rl' })).toBeUndefined();
  expect(learntFrom({ stage: 'rl', run: 'other' })).toBe('other');
});

test('one may be trained for other runs alone, and from the episodes of another run', () => {
  const of = { ...judge, episodes: { stage: 'rl', run: 'other' } };
  expect(
    problemsOf({ ...specWith([of, rl]), reward: { components: specWith([]).reward.components } }),
  ).toEqual([]);
});

test.each([
  [
    'a stage that is not there',
    [rl, { ...judge, episodes: { stage: 'rk' } }, judged],
    undefined,
    '"rk" is no earlier stage with episodes; did you mean "rl"?; one of another run needs its run',
  ],
  [
    'a later stage',
    [judge, rl],
    undefined,
    '"rl" is no earlier stage with episodes; one of another run needs its run',
  ],
  [
    'a judge that is none',
    [rl, judge, judged],
    { stage: 'rl' },
    '"rl" is no stage of the kind reward; valid: judge',
  ],
  [
    'a judge that nobody needs',
    [rl, judge],
    undefined,
    'no rl stage comes after "judge": nothing would be judged by it',
  ],
  [
    'deviations of a minimum',
    [rl, judge, judged],
    { stage: 'judge', by: 'minimum', deviations: 2 },
    'does nothing for minimum; mean-deviation reads it',
  ],
  [
    'steps of nobody',
    [rl, { ...judge, labels: 'steps' }, judged],
    undefined,
    'is missing: name the component whose verifier judges steps',
  ],
  [
    'steps of no component',
    [rl, { ...judge, labels: 'steps', stepsOf: 'sub-goals' }, judged],
    undefined,
    '"sub-goals" is no component of one verifier; valid: exact-match',
  ],
  [
    'steps of an ensemble, which has none',
    [rl, { ...judge, labels: 'steps', stepsOf: 'both' }, judged],
    undefined,
    '"both" is no component of one verifier; valid: exact-match',
    {
      components: [
        { verifier: 'exact-match', role: 'outcome' },
        { verifier: 'both', role: 'bonus', weight: 0.1 },
      ],
      ensembles: [{ name: 'both', verifiers: ['exact-match', 'sub-goals'] }],
    },
  ],
  [
    'steps that the stage never does',
    [rl, { ...judge, episodes: { stage: 'rl', steps: { from: 11 } } }, judged],
    undefined,
    'is after the last of the 10 steps of rl',
  ],
  [
    'tasks that the stage never has',
    [rl, { ...judge, tasks: [{ environment: 'calculator', levels: [2] }] }, judged],
    undefined,
    '"rl" rolls out none of the tasks of this stage, but calculator:1: name tasks that it has',
  ],
  [
    'deviations of one model',
    [rl, judge, judged],
    { stage: 'judge', deviations: 2 },
    'does nothing: models of "judge" is 1, and one model says what it says',
  ],
  [
    'a minimum of one model',
    [rl, judge, judged],
    { stage: 'judge', by: 'minimum' },
    'does nothing: models of "judge" is 1, and one model says what it says',
  ],
  [
    'pairs that are not made',
    [rl, { ...judge, pairsPerTask: 2 }, judged],
    undefined,
    'does nothing with labels outcomes; pairs reads it',
  ],
])('%s is refused', (_, stages, model, problem, reward?: object) => {
  const written = specWith(stages, model);
  const problems = problemsOf({ ...written, reward: { ...written.reward, ...reward } });
  expect(problems.join('\n')).toContain(problem);
});
