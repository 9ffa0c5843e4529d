import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { lowerBound } from '../../../../core/statistics/binomial.ts';
import {
  collapseDecision,
  weighEvaluation,
  noHistory,
  everyArmSucceeds,
} from '../../../../core/training/stage-policy.ts';
import { plannedLooks } from '../../../../core/training/shared-error.ts';
import type { StageHistory } from '../../../../core/training/stage-policy.ts';
import type { RlStageSpec } from '../../../../core/schema/stages/rl.ts';
import { arm, checkpoint, stageSpec as stageOfTwo } from './scripted-training.ts';

const stageSpec = { ...stageOfTwo, arms: [arm(1)] };

const at = (step: number, successes: number, trials = 200) => ({
  arms: [{ arm: arm(1), successes, trials }],
  checkpoint: checkpoint(`rl-${step}`),
  step,
});

/** Judges one evaluation of 200 tasks after the other, and returns all decisions. */
function verifyAll(successes: number[], spec: Partial<RlStageSpec> = {}) {
  let history = noHistory();
  const decisions = successes.map((count, i) => {
    const judged = weighEvaluation({ ...stageSpec, ...spec }, history, at(i + 1, count));
    history = judged.history;
    return judged.decision;
  });
  return { history, decisions, kinds: decisions.map(({ kind }) => kind) };
}

describe('graduation', () => {
  test('wants the goal shown at all ten looks together, where one look alone would want less', () => {
    expect(plannedLooks(stageSpec)).toBe(10);
    // A tenth of an error of 0.1 for each.
    expect(lowerBound({ successes: 189, trials: 200 }, 0.01)).toBeLessThan(0.9);
    expect(lowerBound({ successes: 190, trials: 200 }, 0.01)).toBeGreaterThan(0.9);
    expect(verifyAll([189]).kinds).toEqual(['continue']);
    expect(verifyAll([190]).kinds).toEqual(['graduate']);
    expect(verifyAll([187], { maxSteps: 1 }).kinds).toEqual(['graduate']);
  });

  test('looks as often as its steps allow, the last one included', () => {
    const graduation = { ...stageSpec.graduation, everySteps: 4 };
    expect(plannedLooks({ maxSteps: 8, graduation })).toBe(2);
    expect(plannedLooks({ maxSteps: 9, graduation })).toBe(3);
    expect(plannedLooks({ maxSteps: 3, graduation })).toBe(1);
  });

  test('comes with the bound exactly where the arms together reach it', () => {
    fc.assert(
      fc.property(fc.nat(100), fc.nat(100), (one, two) => {
        const arms = [
          { arm: arm(1), successes: one, trials: 100 },
          { arm: arm(2), successes: two, trials: 100 },
        ];
        const { decision } = weighEvaluation(stageOfTwo, noHistory(), { ...at(1, 0), arms });
        const reached = lowerBound({ successes: one + two, trials: 200 }, 0.01) >= 0.9;
        expect(decision.kind === 'graduate').toBe(reached);
      }),
    );
  });

  test('goes before plateau and collapse', () => {
    const history: StageHistory = {
      best: { success: 1, checkpoint: checkpoint('best'), step: 1 },
      shown: 0.99,
      recent: [200, 200, 200].map((successes) => ({ successes, trials: 200 })),
      rollbacks: 0,
    };
    const spec = { ...stageSpec, collapse: { ...stageSpec.collapse, successBelowBest: 1 } };
    expect(weighEvaluation(spec, history, at(5, 195)).decision.kind).toBe('graduate');
    expect(weighEvaluation(spec, history, at(5, 189)).decision.kind).toBe('collapse');
    expect(weighEvaluation(stageSpec, history, at(5, 189)).decision.kind).toBe('plateau');
  });
});

describe('a plateau', () => {
  test('is where no gain worth the while can be, from the first half of the evaluations to the second', () => {
    const { kinds, history } = verifyAll([100, 101, 99, 100]);
    expect(kinds).toEqual(['continue', 'continue', 'continue', 'plateau']);
    expect(history.best).toMatchObject({ success: 101 / 200, step: 2 });
  });

  test('is none while the gain may be there, or has been too little looked at', () => {
    expect(verifyAll([100, 100, 130, 150]).kinds).not.toContain('plateau');
    const plateau = { ...stageSpec.plateau, minImprovement: 0.02 };
    expect(verifyAll([100, 101, 99, 100, 101, 99], { plateau }).kinds).not.toContain('plateau');
  });

  test('looks at the latest evaluations only', () => {
    expect(verifyAll([20, 40, 60, 140, 142, 141, 140]).kinds.at(-2)).toBe('continue');
    expect(verifyAll([20, 40, 60, 140, 142, 141, 140]).kinds.at(-1)).toBe('plateau');
  });
});

describe('a collapse', () => {
  test('is a fall below a part of the best, which stays the one to go back to', () => {
    // What 150 of 200 show is 65.1 %, and 75 of 200 are at most 46.9 %.
    const { decisions, history } = verifyAll([150, 104, 70]);
    expect(decisions.map(({ kind }) => kind)).toEqual(['continue', 'continue', 'collapse']);
    expect(decisions[2]).toMatchObject({
      action: 'rollback',
      reason: expect.stringContaining('75.0 %') as string,
    });
    expect(history.best).toMatchObject({ success: 0.75, checkpoint: checkpoint('rl-1') });
  });

  test('that is one only by failures at a tool asks a person, and says how many those were', () => {
    const { history } = verifyAll([150]);
    const fallen = (successes: number, toolFailures: number) => {
      const arms = [{ arm: arm(1), successes, trials: 200, toolFailures }];
      return weighEvaluation(stageSpec, history, { ...at(2, 0), arms }).decision;
    };
    // 70 of the 100 that the tool let be are no fall from 150 of 200.
    expect(fallen(70, 100)).toMatchObject({
      kind: 'collapse',
      action: 'ask',
      reason: expect.stringMatching(/; 100 of 200 episodes failed at a tool, which is no success$/) as string,
    });
    expect(fallen(60, 10)).toMatchObject({ kind: 'collapse', action: 'rollback' });
    expect(fallen(150, 10)).toEqual({ kind: 'continue' });
  });

  test('cannot be the first measurement', () => {
    expect(verifyAll([0]).kinds).toEqual(['continue']);
  });

  test('shows in the entropy, unless that rule is off or nothing was trained', () => {
    const spec = { ...stageSpec, collapse: { ...stageSpec.collapse, entropyBelow: 0.05 } };
    expect(collapseDecision(spec, 0.049)).toMatchObject({ kind: 'collapse', action: 'rollback' });
    expect(collapseDecision(spec, 0.05)).toEqual({ kind: 'continue' });
    expect(collapseDecision(spec, null)).toEqual({ kind: 'continue' });
    expect(collapseDecision(stageSpec, 0)).toEqual({ kind: 'continue' });
  });
});

test('a supervised stage graduates only when every arm was measured and reaches the goal', () => {
  const spec = { arms: [arm(1), arm(2)], graduation: { successAtLeast: 0.4, tasksPerLevel: 10 } };
  const tally = (level: number, successes: number) => ({ arm: arm(level), successes, trials: 10 });
  expect(everyArmSucceeds(spec, [tally(2, 4), tally(1, 9)])).toBe(true);
  expect(everyArmSucceeds(spec, [tally(1, 10), tally(2, 3)])).toBe(false);
  expect(everyArmSucceeds(spec, [tally(1, 10)])).toBe(false);
  expect(everyArmSucceeds(spec, [tally(1, 10), { arm: arm(2), successes: 0, trials: 0 }])).toBe(false);
});
