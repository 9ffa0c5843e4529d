import { describe, expect, test } from 'vitest';
import { tinySpec } from '../../support/tiny-spec.ts';
import type { RlStageSpec } from '../../../core/schema/stages/rl.ts';
import { parseSpec } from '../../../spec/parse-spec.ts';
import { environments, problemsOf } from './problems-of.ts';

const tiny = tinySpec({ maxSteps: 2 });
const [warmStart, rl] = tiny.stages;
const subGoals = { verifier: 'sub-goals', role: 'bonus', weight: 0 };
const ofTurns = { kind: 'process', verifier: 'sub-goals', by: 'turns', weight: 0.1 };

/** What is wrong with a spec whose one stage says this. */
const problems = (stage: object, rules: object[] = []): string[] =>
  problemsOf({
    ...tiny,
    reward: { components: [...tiny.reward.components, subGoals], rules },
    stages: [warmStart, { ...rl, ...stage }],
  });

describe('a step that is refilled is bounded by all that it may draw', () => {
  const wide = { groupsPerStep: 400, groupsPerWorkflow: 1, numGenerations: 4 };

  test('its child workflows', () => {
    expect(problems({ ...wide, algorithm: { kind: 'dapo', maxRefills: 1 } })).toEqual([]);
    expect(problems({ ...wide, algorithm: { kind: 'dapo', maxRefills: 2 } })).toEqual([
      'stages[1].groupsPerWorkflow: makes 1200 child workflows of the 400 tasks of a step and 2 refills, at most 1000: raise it',
    ]);
    const few = { groupsPerStep: 10, groupsPerWorkflow: 1, numGenerations: 4 };
    expect(problems({ ...few, algorithm: { kind: 'dapo', maxRefills: 99 } })).toEqual([]);
    expect(problems({ ...few, algorithm: { kind: 'dapo', maxRefills: 100 } })).toEqual([
      'stages[1].groupsPerWorkflow: makes 1010 child workflows of the 10 tasks of a step and 100 refills, at most 1000: raise it',
    ]);
    const tree = { kind: 'tree', roots: 2, branches: 1 };
    expect(
      problems({ ...few, groupsPerStep: 120, collect: tree, algorithm: { kind: 'dapo', maxRefills: 2 } }),
    ).toEqual([
      'stages[1].groupsPerWorkflow: makes 1080 child workflows of the 120 tasks of a step and 2 refills and 2 rounds of a tree, at most 1000: raise it',
    ]);
    expect(problems({ ...wide, groupsPerStep: 600, algorithm: { kind: 'remax' } })).toEqual([
      'stages[1].groupsPerWorkflow: makes 1200 child workflows of the 600 tasks of a step, at most 1000: raise it',
    ]);
  });

  test('its episodes', () => {
    const many = { groupsPerStep: 512, groupsPerWorkflow: 32, numGenerations: 64 };
    expect(problems({ ...many, algorithm: { kind: 'grpo' } })).toEqual([]);
    expect(problems({ ...many, algorithm: { kind: 'grpo', maxRefills: 3 } })[0]).toMatch(
      /^stages\[1\]\.groupsPerStep: makes 131072 episodes a step with 64 samples each and 3 refills, at most 65536/,
    );
  });
});

describe('what single turns are paid', () => {
  test('must be read by a method of the run', () => {
    expect(problems({ algorithm: { kind: 'gigpo' } }, [ofTurns])).toEqual([]);
    expect(problems({ algorithm: { kind: 'grpo' } }, [ofTurns])[0]).toMatch(
      /^reward\.rules\[0\]\.by: no stage reads rewards of single turns: choose a method that does \(.*gigpo.*\)/,
    );
  });

  test('must be there for a method that lives by it', () => {
    expect(problems({ algorithm: { kind: 'process' } }, [ofTurns])).toEqual([]);
    expect(problems({ algorithm: { kind: 'process' } })[0]).toMatch(
      /^stages\[1\]\.algorithm\.kind: nothing pays single turns/,
    );
  });
});

test('a critic that is trained alone to the end of the stage is refused', () => {
  const graduation = { ...rl.graduation, successAtLeast: 0.5 };
  expect(problems({ maxSteps: 5, graduation, algorithm: { kind: 'vapo' } })).toEqual([
    'stages[1].algorithm.critic.pretrainingSteps: 5 of 5 steps train the critic alone, so the policy would never be updated: lower it, or raise maxSteps (pretrainingSteps is not written, and 5 by default)',
  ]);
  expect(problems({ maxSteps: 6, graduation, algorithm: { kind: 'vapo' } })).toEqual([]);
});

test('the corrections of hindsight count among the episodes of a step', () => {
  const many = { groupsPerStep: 512, groupsPerWorkflow: 32, numGenerations: 64 };
  expect(problems({ ...many, algorithm: { kind: 'hindsight', corrections: 128 } })[0]).toMatch(
    /^stages\[1\]\.groupsPerStep: makes 98304 episodes a step with 192 samples each/,
  );
});

describe('what would do nothing is refused', () => {
  const at = (field: string, message: string) => [
    expect.stringMatching(new RegExp(`^stages\\[1\\]\\.${field}: .*${message}`)),
  ];

  test('kto by which neither sort counts', () => {
    const weights = (desirableWeight: number, undesirableWeight: number) =>
      problems({ algorithm: { kind: 'kto', desirableWeight, undesirableWeight } });
    expect(weights(0, 0)).toEqual(at('algorithm.desirableWeight', 'raise one of them'));
    expect([...weights(0, 1), ...weights(1, 0)]).toEqual([]);
  });

  test('the estimator of a KL that has no weight', () => {
    const k3 = (beta: number) => problems({ algorithm: { kind: 'reinforce++', klEstimator: 'k3', beta } });
    expect(k3(0)).toEqual(at('algorithm.klEstimator', 'give beta'));
    expect([...k3(0.1), ...problems({ algorithm: { kind: 'reinforce++' } })]).toEqual([]);
  });

  test('ipo whose target nothing of the policy would be left at', () => {
    const beta = (of: number, variant: string) => problems({ algorithm: { kind: 'dpo', variant, beta: of } });
    expect(beta(1e-6, 'ipo')).toEqual(at('algorithm.beta', '= 500000 nats apart.* give 0.001 or more'));
    expect([...beta(1e-3, 'ipo'), ...beta(1e-6, 'sigmoid')]).toEqual([]);
  });

  test('a teacher twice', () => {
    const teachers = (...from: string[]) =>
      problems({ algorithm: { kind: 'opd', teachers: from.map((one) => ({ from: one })) } });
    expect(teachers('one', 'other', 'one')).toEqual(at('algorithm.teachers', 'one is named twice'));
    expect(teachers('one', 'one@3')).toEqual([]);
  });

  test('a schedule of temperatures that goes nowhere', () => {
    const schedule = (from: number, to: number) =>
      problems({ exploration: { temperature: { from, to, steps: 10 } } });
    const field = 'exploration.temperature.to';
    expect(schedule(1, 1)).toEqual(at(field, 'leave the schedule out'));
    expect(schedule(1.2, 1.2)).toEqual(at(field, 'or set sampling.temperature'));
    expect(schedule(1.2, 1)).toEqual([]);
  });

  test('refills of rft, which learns from tasks that all samples solve', () => {
    expect(problems({ algorithm: { kind: 'rft', maxRefills: 2 } })).toEqual(
      at('algorithm.maxRefills', 'this is of kind "rft"'),
    );
  });
});

test('a student begins at some distance from its teacher', () => {
  const of = (from: string, stages: object[]) => problemsOf({ ...tiny, model: { from }, stages });
  const taughtBy = (...from: string[]) => ({
    ...rl,
    name: 'taught',
    algorithm: { kind: 'opd', teachers: from.map((one) => ({ from: one })) },
  });
  expect(of('start', [taughtBy('start')])).toEqual([
    expect.stringMatching(
      /^stages\[0\]\.algorithm\.teachers: start is what the stage begins with \(model\.from\)/,
    ),
  ]);
  // What has learnt meanwhile is held near by, and a mixture is somewhere else.
  expect(of('start', [rl, taughtBy('start')])).toEqual([]);
  expect(of('start', [taughtBy('start', 'other')])).toEqual([]);
  expect(of('start', [taughtBy('other')])).toEqual([]);
});

describe('defaults that would ruin a small policy', () => {
  const rlOf = (stage: object) => {
    const { stages } = parseSpec({ ...tiny, stages: [warmStart, { ...rl, ...stage }] }, 'run', environments);
    return stages[1] as RlStageSpec;
  };

  test('vapo has a λ above one half from the second token on', () => {
    expect(rlOf({ algorithm: { kind: 'vapo', critic: { pretrainingSteps: 0 } } }).algorithm).toMatchObject({
      alpha: 1,
    });
  });

  test('an alpha of vapo that leaves λ small for the longest answer is refused, with one that does not', () => {
    const sampling = { ...tiny.sampling, maxCompletionTokens: 160 };
    const found = problemsOf({
      ...tiny,
      sampling,
      stages: [warmStart, { ...rl, algorithm: { kind: 'vapo', alpha: 0.05 } }],
    }).filter((problem) => problem.includes('alpha'));
    expect(found).toEqual([
      'stages[1].algorithm.alpha: makes λ 0 for answers of 20 tokens or fewer, and 0.875 for the longest, of sampling.maxCompletionTokens 160: give 0.125 or more (1, say; 0.05 is for thousands of tokens)',
    ]);
    expect(
      problemsOf({
        ...tiny,
        sampling: { ...tiny.sampling, maxCompletionTokens: 4000 },
        stages: [warmStart, { ...rl, algorithm: { kind: 'vapo', alpha: 0.05 } }],
      }).filter((problem) => problem.includes('alpha')),
    ).toEqual([]);
  });

  test('kto has a learning rate of its own, unless one is written', () => {
    expect(rlOf({ algorithm: { kind: 'kto' } }).optimizer.learningRate).toBe(1e-4);
    expect(rlOf({ algorithm: { kind: 'kto' }, optimizer: { beta1: 0.8 } }).optimizer).toMatchObject({
      learningRate: 1e-4,
      beta1: 0.8,
    });
    expect(
      rlOf({ algorithm: { kind: 'kto' }, optimizer: { learningRate: 2e-5 } }).optimizer.learningRate,
    ).toBe(2e-5);
    expect(rlOf({ algorithm: { kind: 'grpo' } }).optimizer.learningRate).toBe(3e-4);
  });
});
