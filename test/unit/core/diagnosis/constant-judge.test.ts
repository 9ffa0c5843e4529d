import { describe, expect, test } from 'vitest';
import { RandomStream } from '../../../../core/random.ts';
import { addBehaviour, noBehaviour } from '../../../../core/training/behaviour.ts';
import type { ComponentCounts } from '../../../../core/training/step-facts.ts';
import { alarmsOf, factsOf } from './stages.ts';
import type { Told } from './stages.ts';

const GROUPS = 16;
const SAMPLES = 8;

/** A step in which a component of the reward came to this; success and contrast are those of a healthy one. */
function stepOf(stageStep: number, component: ComponentCounts | null): Told {
  const facts = factsOf(stageStep, { reward: 0.5, success: 0.5, variance: 0.2, equal: 0.3 });
  const components = component === null ? {} : { judged: component };
  return { ...facts, rollout: { ...facts.rollout!, rewardGroups: GROUPS, components } };
}

const stepsOf = (steps: number, component: (step: number) => ComponentCounts | null): Told[] =>
  Array.from({ length: steps }, (_, i) => stepOf(i + 1, component(i + 1)));

const namedAt = (stage: readonly Told[]): number[] =>
  alarmsOf(stage).flatMap(({ name, stageStep }) => (name === 'constant-judge' ? [stageStep] : []));

const COUNT = GROUPS * SAMPLES;

/** Scores of a verifier, all between these. */
const scores = (lowest: number, highest = lowest): ComponentCounts => ({
  scored: COUNT,
  score: (COUNT * (lowest + highest)) / 2,
  contribution: 0,
  lowest,
  highest,
});

/** What a model says of all, where the verifier passes this part of those that it has judged. */
const model = (said: number, part: number, compared: number): ComponentCounts => {
  const passed = Math.round(part * compared);
  return {
    ...scores(said),
    model: {
      judged: COUNT,
      score: COUNT * said,
      uncertainty: 0,
      compared,
      excess: compared * said - passed,
      squaredError: passed * (said - 1) ** 2 + (compared - passed) * said ** 2,
    },
  };
};

describe('a judge that gives everything the same score', () => {
  test('is named, though other components give contrast, as soon as enough groups are alike', () => {
    // 0.9^127 is less than 0.01 / (48 · 8 · 9), and 0.9^111 more than 0.01 / (48 · 7 · 8).
    expect(namedAt(stepsOf(12, () => scores(0.5)))).toEqual([8]);
    expect(namedAt(stepsOf(12, () => scores(0.5, 0.505)))).toEqual([8]);
  });

  test('is named after it has begun to, in a stage that was healthy before', () => {
    const [at] = namedAt(stepsOf(60, (step) => (step <= 40 ? scores(0, 1) : scores(0.7))));
    expect(at).toBeGreaterThan(46);
    expect(at).toBeLessThanOrEqual(52);
  });

  test('is named as a model, whatever its score is, where the verifier says different things of the same episodes', () => {
    for (const said of [0, 0.5, 1]) expect(namedAt(stepsOf(12, () => model(said, 0.5, COUNT)))).toEqual([8]);
    // On a ladder, by what is audited.
    expect(namedAt(stepsOf(12, () => model(1, 0.5, 6)))).toEqual([8]);
  });
});

describe('no alarm is', () => {
  test('a policy that earns all of a verifier, or nothing', () => {
    for (const said of [0, 0.005, 0.995, 1]) expect(namedAt(stepsOf(60, () => scores(said)))).toEqual([]);
  });

  test('a model of a policy that has mastered its tasks, or solves none', () => {
    expect(namedAt(stepsOf(60, () => model(1, 1, COUNT)))).toEqual([]);
    expect(namedAt(stepsOf(60, () => model(0, 0, COUNT)))).toEqual([]);
    expect(namedAt(stepsOf(60, () => model(1, 0.98, COUNT)))).toEqual([]);
    // Nobody has audited it, so that nobody knows better.
    expect(namedAt(stepsOf(60, () => model(1, 0, 0)))).toEqual([]);
  });

  test('a judge whose scores differ, or one score in a step', () => {
    expect(namedAt(stepsOf(60, () => scores(0.4, 0.6)))).toEqual([]);
    expect(namedAt(stepsOf(60, (step) => scores(step % 6 === 0 ? 0.3 : 0.5)))).toEqual([]);
  });

  test('a component that nobody has scored, or an older version has counted', () => {
    expect(namedAt(stepsOf(60, () => null))).toEqual([]);
    const { lowest: _, highest: __, ...older } = scores(0.5);
    expect(namedAt(stepsOf(60, () => older))).toEqual([]);
  });
});

test('a judge that tells a tenth of the groups apart is named in one stage of a hundred at most', () => {
  const STAGES = 1000;
  let named = 0;
  for (let seed = 0; seed < STAGES; seed++) {
    const random = new RandomStream('a judge', seed);
    // What the rule reads, step by step, of groups that are alike with a probability of 0.9 each.
    const alike = Array.from({ length: 100 }, () =>
      Array.from({ length: GROUPS }).every(() => random.uniform() < 0.9),
    );
    // A cheap look first: no alarm without eight such steps in a row.
    const runs = alike.map((_, i) => alike.slice(Math.max(0, i - 7), i + 1).every(Boolean) && i >= 7);
    if (!runs.some(Boolean)) continue;
    named += Number(
      namedAt(stepsOf(100, (step) => (alike[step - 1] ? scores(0.5) : scores(0.2, 0.5)))).length > 0,
    );
  }
  expect(named).toBeLessThanOrEqual(0.01 * STAGES);
});

test('the least and the greatest score of groups add up, and of older counts they are unknown', () => {
  const of = (component: ComponentCounts) => ({ ...noBehaviour(), components: { judged: component } });
  const sum = (a: ComponentCounts, b: ComponentCounts) => addBehaviour(of(a), of(b)).components['judged'];
  expect(sum(scores(0.2, 0.4), scores(0.3, 0.9))).toMatchObject({ lowest: 0.2, highest: 0.9 });
  const nobody = { scored: 0, score: 0, contribution: 0 };
  expect(sum(nobody, scores(0.3))).toMatchObject({ lowest: 0.3, highest: 0.3 });
  const { lowest: _, highest: __, ...older } = scores(0.5);
  expect(sum(older, scores(0.3))).not.toHaveProperty('lowest');
});
