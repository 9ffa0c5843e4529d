import { armName } from '../names.ts';
import type { Arm } from '../schema/tasks.ts';
import type { Tries } from '../statistics/pass-at-k.ts';

// How tasks are solved, not only whether: what an outcome alone does not say.

/** What the episodes of an arm did about their tasks, in numbers that add up. */
export interface HowSolved {
  /** Episodes of which it can be said whether they solved their task, and those that did. All else is told of these. */
  episodes: number;
  solved: number;
  /** Over the solved ones. */
  solvedTurns: number;
  solvedCalls: number;
  solvedTokens: number;
  /** Sampled tokens of all. */
  tokens: number;
  /** Ended with an answer or by their environment, and every turn was a call or an answer. */
  compliant: number;
  /** Calls, and those that a tool answered without an error. */
  calls: number;
  goodCalls: number;
  /** Calls of tools that the task does not have; absent of what was measured before they were counted. */
  unknownTools?: number;
  /** Made two different calls or more; and solved the task. */
  multiStep: number;
  multiStepSolved: number;
  /** Were told of an error (malformed, unknown tool, wrong arguments, refused); and solved the task all the same. */
  erred: number;
  recovered: number;
  /** Tasks by how many of their samples solved them. */
  tries: Tries;
}

export interface ArmHowSolved extends HowSolved {
  arm: Arm;
}

export const noneSolved = (): Required<HowSolved> => ({
  episodes: 0,
  solved: 0,
  solvedTurns: 0,
  solvedCalls: 0,
  solvedTokens: 0,
  tokens: 0,
  compliant: 0,
  calls: 0,
  goodCalls: 0,
  unknownTools: 0,
  multiStep: 0,
  multiStepSolved: 0,
  erred: 0,
  recovered: 0,
  tries: {},
});

/** All of them together. */
export function addHowSolved(all: readonly HowSolved[]): HowSolved {
  const { unknownTools: none, ...sum } = noneSolved();
  for (const howSolved of all) {
    for (const name of Object.keys(sum) as (keyof typeof sum)[]) {
      if (name !== 'tries') sum[name] += howSolved[name];
    }
    for (const [tried, tasks] of Object.entries(howSolved.tries)) {
      sum.tries[tried] = (sum.tries[tried] ?? 0) + tasks;
    }
  }
  const unknown = all.map(({ unknownTools }) => unknownTools);
  if (!unknown.every((count) => count !== undefined)) return sum;
  return { ...sum, unknownTools: unknown.reduce((total, count) => total + count, none) };
}

/** Added up by arm, in the order in which arms come first. */
export function addByArm(all: readonly ArmHowSolved[]): ArmHowSolved[] {
  const byArm = new Map<string, ArmHowSolved[]>();
  for (const howSolved of all) {
    const name = armName(howSolved.arm);
    byArm.set(name, [...(byArm.get(name) ?? []), howSolved]);
  }
  return [...byArm.values()].map((same) => ({ ...addHowSolved(same), arm: same[0]!.arm }));
}
