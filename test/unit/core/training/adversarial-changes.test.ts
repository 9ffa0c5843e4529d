import { describe, expect, test } from 'vitest';
import { chanceOfAtLeast } from '../../../../core/statistics/binomial.ts';
import { paid, partOf, planned } from '../../../../core/training/shared-error.ts';
import type { SharedError } from '../../../../core/training/shared-error.ts';
import { stageSpec } from './scripted-training.ts';

// Exact: a policy that stays at its goal is measured on the same tasks at each look, of which a part (`churn`) is solved
// anew from look to look. So looks depend on each other, and somebody who sees one knows something of the next. What is
// the probability that the stage graduates if they change its steps as they like?

const GOAL = 0.8;
const ERROR = 0.1;

interface Looks {
  tasks: number;
  /** Probability of each number of successes. */
  first: Float64Array;
  /** By the number of successes of the look before. */
  next: Float64Array[];
}

function looksOf(tasks: number, churn: number): Looks {
  const next = Array.from({ length: tasks + 1 }, (_, solved) => {
    const kept = binomial(solved, 1 - churn + churn * GOAL);
    const won = binomial(tasks - solved, churn * GOAL);
    const row = new Float64Array(tasks + 1);
    kept.forEach((a, i) => won.forEach((b, j) => (row[i + j]! += a * b)));
    return row;
  });
  return { tasks, first: Float64Array.from(binomial(tasks, GOAL)), next };
}

function binomial(n: number, chance: number): number[] {
  const above = Array.from({ length: n + 2 }, (_, k) => chanceOfAtLeast({ successes: k, trials: n }, chance));
  return Array.from({ length: n + 1 }, (_, k) => above[k]! - above[k + 1]!);
}

const mean = (chances: Float64Array, of: ArrayLike<number>): number =>
  chances.reduce((sum, chance, x) => sum + chance * of[x]!, 0);

const planOf = (maxSteps: number, step: number, error?: SharedError): SharedError =>
  planned(
    {
      ...stageSpec,
      maxSteps,
      graduation: { everySteps: 1 },
    },
    { ...(error && { error }), recent: [] },
    step,
  );

const passes = (tasks: number, successes: number, { every }: SharedError): boolean =>
  chanceOfAtLeast({ successes, trials: tasks }, GOAL) <= partOf(every, ERROR);

/** By whoever graduates the stage as often as they can, with `longest` steps at most. */
function worst({ tasks, first, next }: Looks, maxSteps: number, longest: number): number {
  const known = new Map<string, Float64Array>();
  /** Probability of graduating from the look of `step` on, by the successes of the look before. */
  const from = (error: SharedError, step: number): Float64Array => {
    const key = JSON.stringify([step, error]);
    const before = known.get(key);
    if (before) return before;
    const best = new Float64Array(tasks + 1);
    for (let steps = step; steps <= longest; steps++) {
      const value = after(planOf(steps, step, error), step);
      next.forEach((row, x) => (best[x] = Math.max(best[x]!, mean(row, value))));
    }
    known.set(key, best);
    return best;
  };
  /** The same when the look of `step` is made, by its own successes. */
  const after = (plan: SharedError, step: number): Float64Array => {
    const rest = step < longest ? from(paid(plan, false), step + 1) : new Float64Array(tasks + 1);
    return rest.map((chance, x) => (passes(tasks, x, plan) ? 1 : chance));
  };
  return mean(first, after(planOf(maxSteps, 1), 1));
}

/** By whoever cuts the stage short behind the next look where this one would have passed with most of what is left. */
function cutAfterLuck({ tasks, first, next }: Looks, maxSteps: number): number {
  let graduated = 0;
  let goingOn = first;
  let error: SharedError | undefined;
  for (let step = 1; step <= maxSteps; step++) {
    const plan = planOf(maxSteps, step, error);
    error = paid(plan, false);
    const cut = planOf(step + 1, step + 1, error);
    const rest = error.every.left * (1 - error.every.made / error.every.looks);
    const still = new Float64Array(tasks + 1);
    for (const [x, chance] of goingOn.entries()) {
      if (chance === 0) continue;
      if (passes(tasks, x, plan)) graduated += chance;
      else if (chanceOfAtLeast({ successes: x, trials: tasks }, GOAL) <= ERROR * rest * 0.8)
        graduated +=
          chance *
          mean(
            next[x]!,
            Array.from(first, (_, y) => Number(passes(tasks, y, cut))),
          );
      else next[x]!.forEach((part, y) => (still[y]! += chance * part));
    }
    goingOn = still;
  }
  return graduated;
}

describe('a policy just at its goal graduates no oftener than stated', () => {
  test.each([
    [40, 0.1],
    [100, 0.1],
    [100, 0.05],
    [100, 1],
  ])('in a stage of %d looks that is cut short after a lucky one (churn %d)', (looks, churn) => {
    expect(cutAfterLuck(looksOf(200, churn), looks)).toBeLessThanOrEqual(ERROR);
  });

  test.each([2, 3, 4, 6, 8].flatMap((looks) => [0.1, 0.3, 0.6, 0.9].map((churn) => ({ looks, churn }))))(
    'in a stage of $looks looks whose steps are cut short in the worst way (churn $churn)',
    ({ looks, churn }) => {
      expect(worst(looksOf(60, churn), looks, looks)).toBeLessThanOrEqual(ERROR);
    },
  );

  test.each([2, 3, 4, 6].flatMap((looks) => [0.3, 0.6].map((churn) => ({ looks, churn }))))(
    'in a stage of $looks looks that is prolonged and cut short before each look in the worst way (churn $churn)',
    ({ looks, churn }) => {
      expect(worst(looksOf(60, churn), looks, 8)).toBeLessThanOrEqual(ERROR);
    },
  );
});
