import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { everyArmSucceeds, noHistory, weighEvaluation } from '../../../../core/training/stage-policy.ts';
import { arm, checkpoint, stageSpec } from './scripted-training.ts';

// What could not be judged may be what the policy cannot do.

const arms = [arm(1), arm(2), arm(3)];
const spec = {
  ...stageSpec,
  arms,
  graduation: { ...stageSpec.graduation, successAtLeast: 0.9, tasks: 300, unjudgedAtMost: 0.02 },
};
type Judged = [successes: number, trials: number] | null;
const tallies = (judged: readonly Judged[]) =>
  judged.flatMap((one, i) => (one ? [{ arm: arms[i]!, successes: one[0], trials: one[1] }] : []));
const weigh = (of: Partial<typeof spec>, ...judged: Judged[]) =>
  weighEvaluation({ ...spec, ...of }, noHistory(), {
    arms: tallies(judged),
    checkpoint: checkpoint('rl-1'),
    step: 1,
  });
const kind = (...judged: Judged[]) => weigh({}, ...judged).decision.kind;

describe('a stage graduates', () => {
  test('only if every level was judged', () => {
    expect(kind([98, 100], [98, 100], [98, 100])).toBe('graduate');
    expect(kind([98, 100], [98, 100], null)).toBe('continue');
    expect(kind([98, 100], [98, 100], [0, 0])).toBe('continue');
  });

  test('not by a level that was hardly judged, however low its goal is', () => {
    const graduation = { ...spec.graduation, successAtLeast: 0.3 };
    expect(weigh({ graduation }, [98, 100], [98, 100], [50, 50]).decision.kind).toBe('graduate');
    expect(weigh({ graduation }, [98, 100], [98, 100], [49, 49]).decision.kind).toBe('continue');
    expect(weigh({ graduation }, [98, 100], [98, 100], null).decision.kind).toBe('continue');
  });

  test('not by the part that could be judged, where the rest could not', () => {
    expect(kind([27, 27], [27, 27], [26, 26])).toBe('continue');
    expect(kind([80, 80], [80, 80], [80, 80])).toBe('continue');
  });

  test('although infrastructure has lost a few, as many as the spec lets be missing', () => {
    expect(kind([98, 98], [98, 98], [98, 98])).toBe('graduate');
    const none = { ...spec.graduation, unjudgedAtMost: 0 };
    const goal = { ...none, successAtLeast: 0.945 };
    expect(weigh({ graduation: goal }, [100, 100], [98, 98], [98, 98]).decision.kind).toBe('graduate');
    expect(weigh({ graduation: goal }, [98, 98], [98, 98], [92, 92]).decision.kind).toBe('continue');
  });

  test('never where it would not with all that is missing beyond that counted as failed', () => {
    const judged = fc
      .tuple(fc.nat(100), fc.nat(100))
      .map(([a, b]): Judged => [Math.min(a, b), Math.max(a, b)]);
    fc.assert(
      fc.property(judged, judged, judged, (...levels) => {
        if (weigh({}, ...levels).decision.kind !== 'graduate') return;
        const worst = levels.map((one): Judged => [one![0], Math.max(98, one![1])]);
        expect(kind(...worst)).toBe('graduate');
      }),
    );
  });

  test('as it did where the run began before there was such a limit', () => {
    const { unjudgedAtMost: _, ...graduation } = spec.graduation;
    const of = { ...spec, graduation };
    const evaluation = { arms: tallies([[98, 100], [98, 100], null]), checkpoint: checkpoint('x'), step: 1 };
    expect(weighEvaluation(of, noHistory(), evaluation).decision.kind).toBe('graduate');
  });
});

test('the best checkpoint is not the one of which least could be judged', () => {
  const first = weigh({}, [60, 100], [60, 100], [60, 100]);
  const evaluation = {
    arms: tallies([
      [3, 3],
      [3, 3],
      [3, 3],
    ]),
    checkpoint: checkpoint('rl-2'),
    step: 2,
  };
  const { history } = weighEvaluation(spec, first.history, evaluation);
  expect(history.best).toMatchObject({ step: 1, success: 0.6 });
  expect(history.shown).toBe(first.history.shown);
});

test('a warm start does not end by the few tasks of a level that could be judged', () => {
  const graduation = { successAtLeast: 0.4, tasksPerLevel: 100, unjudgedAtMost: 0.02 };
  const ends = (...judged: Judged[]) => everyArmSucceeds({ arms, graduation }, tallies(judged));
  expect(ends([40, 100], [40, 100], [40, 98])).toBe(true);
  expect(ends([40, 100], [40, 100], [3, 3])).toBe(false);
  expect(ends([40, 100], [40, 100], [39, 60])).toBe(false);
});
