import { describe, expect, test } from 'vitest';
import { RandomStream } from '../../../../core/random.ts';
import type { RlStageSpec } from '../../../../core/schema/stages/rl.ts';
import { weighEvaluation, noHistory } from '../../../../core/training/stage-policy.ts';
import type { StageDecision } from '../../../../core/training/stage-policy.ts';
import { arm, checkpoint, stageSpec } from './scripted-training.ts';

// Whole stages of nothing but evaluations, whose true success is known: how often is each rule wrong?

const RUNS = 200;
/** Two standard errors of a rate of 0.1 in so many runs. */
const LUCK = 0.042;

const never = {
  graduation: { ...stageSpec.graduation, successAtLeast: 1, confidence: 0.9999 },
  plateau: { ...stageSpec.plateau, evaluations: 1000 },
  collapse: { ...stageSpec.collapse, successBelowBest: 0 },
};
const look = (successes: number, tasks: number, step = 1) => ({
  arms: [{ arm: arm(1), successes, trials: tasks }],
  checkpoint: checkpoint(`rl-${step}`),
  step,
});

/** Draws how many of `tasks` succeed, by the distribution function of the binomial. */
function successesOf(tasks: number, chance: number): (random: RandomStream) => number {
  const below: number[] = [];
  let logChoose = 0;
  for (let k = 0; k <= tasks; k++) {
    if (k > 0) logChoose += Math.log((tasks - k + 1) / k);
    below.push(
      (below.at(-1) ?? 0) + Math.exp(logChoose + k * Math.log(chance) + (tasks - k) * Math.log1p(-chance)),
    );
  }
  return (random) => {
    const u = random.uniform();
    const at = below.findIndex((sum) => sum > u);
    return at < 0 ? tasks : at;
  };
}

/** What comes first in stages of so many looks, each of `tasks` tasks; `success` is the true one of each look. */
function firstDecisions(
  success: readonly number[],
  tasks: number,
  rules: Partial<RlStageSpec>,
): { kind: StageDecision['kind']; look: number }[] {
  const { graduation } = { ...never, ...rules };
  const spec = {
    ...stageSpec,
    ...never,
    ...rules,
    arms: [arm(1)],
    graduation: { ...graduation, tasks },
    maxSteps: success.length,
  };
  const draws = success.map((chance) => successesOf(tasks, chance));
  const random = new RandomStream('stage errors', tasks, success[0]!, success.length);
  return Array.from({ length: RUNS }, () => {
    let history = noHistory();
    for (const [at, draw] of draws.entries()) {
      const judged = weighEvaluation(spec, history, look(draw(random), tasks, at + 1));
      history = judged.history;
      if (judged.decision.kind !== 'continue') return { kind: judged.decision.kind, look: at };
    }
    return { kind: 'continue', look: success.length };
  });
}

const decided = (success: readonly number[], tasks: number, rules: Partial<RlStageSpec>): number =>
  firstDecisions(success, tasks, rules).filter(({ kind }) => kind !== 'continue').length / RUNS;

const constant = (success: number, looks: number) => Array.from({ length: looks }, () => success);
const cases = [48, 300, 1000].flatMap((tasks) => [10, 20].map((looks) => ({ tasks, looks })));

describe.each(cases)('in $looks evaluations of $tasks tasks each', ({ tasks, looks }) => {
  test.each([0.05, 0.3, 0.6, 0.95])('a success that stays at %d hardly ever collapses', (success) => {
    const collapse = { ...stageSpec.collapse, confidence: 0.95 };
    expect(decided(constant(success, looks), tasks, { collapse })).toBeLessThanOrEqual(0.05);
  });

  test.each([0.05, 0.3, 0.6, 0.95])(
    'a policy just at the goal of %d graduates no oftener than stated',
    (goal) => {
      const graduation = { ...stageSpec.graduation, successAtLeast: goal, confidence: 0.9, tasks };
      const spec = { ...stageSpec, ...never, arms: [arm(1)], graduation, maxSteps: looks };
      const graduatesWith = (successes: number) =>
        weighEvaluation(spec, noHistory(), look(successes, tasks)).decision.kind === 'graduate';
      const fewest = Array.from({ length: tasks + 1 }, (_, successes) => successes).findIndex(graduatesWith);
      // No simulation: the looks are independent, and the chance of each is known.
      const draws = Array.from({ length: tasks + 1 }, (_, k) => k).filter((k) => fewest >= 0 && k >= fewest);
      const atOneLook = draws.reduce((sum, k) => sum + binomial(k, tasks, goal), 0);
      const everInTheStage = 1 - (1 - atOneLook) ** looks;
      expect(everInTheStage).toBeLessThanOrEqual(0.1);
      // Nor is it much stricter, where there are tasks enough to have a choice.
      if (tasks >= 300) expect(everInTheStage).toBeGreaterThan(0.03);
    },
  );

  test.each([0.05, 0.3, 0.6, 0.7])('a success that rises from %d is no plateau', (from) => {
    // By 0.05 from each half of eight evaluations to the next.
    const plateau = { ...stageSpec.plateau, evaluations: 8, minImprovement: 0.05, confidence: 0.9 };
    const rising = Array.from({ length: looks }, (_, at) => from + at * (0.05 / 4));
    expect(decided(rising, tasks, { plateau })).toBeLessThanOrEqual(0.1 + LUCK);
  });
});

function binomial(k: number, n: number, chance: number): number {
  let log = k * Math.log(chance) + (n - k) * Math.log1p(-chance);
  for (let i = 1; i <= k; i++) log += Math.log((n - k + i) / i);
  return Math.exp(log);
}

describe('what is really so is found', () => {
  const median = (values: number[]) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]!;
  const looksUntil = (success: readonly number[], tasks: number, rules: Partial<RlStageSpec>) =>
    median(firstDecisions(success, tasks, rules).map((first) => first.look));

  test('a policy that is well above its goal, at the first look', () => {
    const { graduation } = stageSpec;
    expect(looksUntil(constant(0.96, 20), 300, { graduation })).toBe(0);
  });

  test('a fall from 0.9 to 0.4, at once', () => {
    const { collapse } = stageSpec;
    expect(looksUntil([0.5, 0.7, 0.9, 0.9, ...constant(0.4, 16)], 300, { collapse })).toBe(4);
    expect(looksUntil([0.3, 0.3, ...constant(0.02, 18)], 300, { collapse })).toBe(2);
  });

  test('a success that stays where it is, soon after enough has been seen of it', () => {
    const plateau = { ...stageSpec.plateau, evaluations: 8, minImprovement: 0.05, confidence: 0.9 };
    expect(looksUntil(constant(0.9, 20), 300, { plateau })).toBe(7);
    expect(looksUntil(constant(0.5, 20), 300, { plateau })).toBeLessThan(14);
  });
});
