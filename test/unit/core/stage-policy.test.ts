import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { wilsonLower } from '../../../core/intervals.ts';
import { entropyCollapse, judgeEvaluation, warmStartGraduates } from '../../../core/stage-policy.ts';
import type { StageHistory } from '../../../core/stage-policy.ts';
import type { StageSpec } from '../../../core/spec.ts';
import { arm, checkpoint, stageSpec } from './scripted-training.ts';

const nothingYet: StageHistory = { best: null, improvedTo: null, evaluationsSinceBest: 0, rollbacks: 0 };
const at = (step: number, successes: number, trials = 200) => ({
  arms: [{ arm: arm(1), successes, trials }],
  checkpoint: checkpoint(`rl-${step}`),
  step,
});

/** Judges one evaluation of 200 tasks after the other, and returns all decisions. */
function judgeAll(successes: number[], spec: Partial<StageSpec> = {}) {
  let history = nothingYet;
  const decisions = successes.map((count, i) => {
    const judged = judgeEvaluation({ ...stageSpec, ...spec }, history, at(i + 1, count));
    history = judged.history;
    return judged.decision;
  });
  return { history, decisions, kinds: decisions.map(({ kind }) => kind) };
}

describe('graduation', () => {
  test('wants the lower bound at the goal, not the rate', () => {
    // 186 of 200 is 93 %, with a bound of 90.2 %; 185 has 89.7 %.
    expect(wilsonLower({ successes: 185, trials: 200 }, 0.9)).toBeLessThan(0.9);
    expect(wilsonLower({ successes: 186, trials: 200 }, 0.9)).toBeGreaterThan(0.9);
    expect(judgeAll([185]).kinds).toEqual(['continue']);
    expect(judgeAll([186]).kinds).toEqual(['graduate']);
  });

  test('comes with the bound exactly where the arms together reach it', () => {
    fc.assert(
      fc.property(fc.nat(100), fc.nat(100), (one, two) => {
        const arms = [
          { arm: arm(1), successes: one, trials: 100 },
          { arm: arm(2), successes: two, trials: 100 },
        ];
        const { decision } = judgeEvaluation(stageSpec, nothingYet, { ...at(1, 0), arms });
        const reached = wilsonLower({ successes: one + two, trials: 200 }, 0.9) >= 0.9;
        expect(decision.kind === 'graduate').toBe(reached);
      }),
    );
  });

  test('goes before plateau and collapse', () => {
    const history: StageHistory = {
      best: { success: 1, checkpoint: checkpoint('best'), step: 1 },
      improvedTo: 1,
      evaluationsSinceBest: 99,
      rollbacks: 0,
    };
    const spec = { ...stageSpec, collapse: { ...stageSpec.collapse, successBelowBest: 1 } };
    expect(judgeEvaluation(spec, history, at(2, 195)).decision.kind).toBe('graduate');
  });
});

describe('a plateau', () => {
  test('is so many evaluations in a row without a gain', () => {
    const { kinds, history } = judgeAll([100, 101, 99, 100]);
    expect(kinds).toEqual(['continue', 'continue', 'continue', 'plateau']);
    expect(history.best).toMatchObject({ success: 101 / 200, step: 2 });
  });

  test('is interrupted by one gain', () => {
    expect(judgeAll([100, 100, 100, 110, 110, 110]).kinds).not.toContain('plateau');
  });

  test('is not a slow but steady climb', () => {
    const climb = Array.from({ length: 40 }, (_, i) => 100 + i);
    expect(judgeAll(climb).kinds).not.toContain('plateau');
  });

  test('is seen at a success that never changes, also where any gain counts', () => {
    const plateau = { ...stageSpec.plateau, minImprovement: 0 };
    expect(judgeAll([0, 0, 0, 0], { plateau }).kinds.at(-1)).toBe('plateau');
    expect(judgeAll([100, 101, 102, 103, 104], { plateau }).kinds).not.toContain('plateau');
  });
});

describe('a collapse', () => {
  test('is a fall below a part of the best, which stays the one to go back to', () => {
    const { decisions, history } = judgeAll([150, 106, 104]);
    expect(decisions.map(({ kind }) => kind)).toEqual(['continue', 'continue', 'collapse']);
    expect(decisions[2]).toMatchObject({
      action: 'rollback',
      reason: expect.stringContaining('75.0 %') as string,
    });
    expect(history.best).toMatchObject({ success: 0.75, checkpoint: checkpoint('rl-1') });
  });

  test('cannot be the first measurement', () => {
    expect(judgeAll([0]).kinds).toEqual(['continue']);
  });

  test('shows in the entropy, unless that rule is off or nothing was trained', () => {
    const spec = { ...stageSpec, collapse: { ...stageSpec.collapse, entropyBelow: 0.05 } };
    expect(entropyCollapse(spec, 0.049)).toMatchObject({ kind: 'collapse', action: 'rollback' });
    expect(entropyCollapse(spec, 0.05)).toEqual({ kind: 'continue' });
    expect(entropyCollapse(spec, null)).toEqual({ kind: 'continue' });
    expect(entropyCollapse(stageSpec, 0)).toEqual({ kind: 'continue' });
  });
});

test('a warm start graduates only when every arm was measured and reaches the goal', () => {
  const spec = { arms: [arm(1), arm(2)], graduation: { successAtLeast: 0.4, tasksPerArm: 10 } };
  const tally = (level: number, successes: number) => ({ arm: arm(level), successes, trials: 10 });
  expect(warmStartGraduates(spec, [tally(2, 4), tally(1, 9)])).toBe(true);
  expect(warmStartGraduates(spec, [tally(1, 10), tally(2, 3)])).toBe(false);
  expect(warmStartGraduates(spec, [tally(1, 10)])).toBe(false);
  expect(warmStartGraduates(spec, [tally(1, 10), { arm: arm(2), successes: 0, trials: 0 }])).toBe(false);
});
