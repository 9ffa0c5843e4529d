import { callByCall } from '../../core/episode/call-by-call.ts';
import { canonicalJson } from '../../core/json/canonical-json.ts';
import type { Turn } from '../../core/episode/episode.ts';
import type { FastVerifier, Task } from '../contract/environment.ts';

/** Whether a turn attains a sub-goal; what its tool answered is in it. One with several calls is asked about call by call. */
export type SubGoal = (turn: Turn) => boolean;

/** Sub-goals of the calls that a task names, in their order, and of its answer where `isAnswer` knows it. */
export function callsThenAnswer(
  { calls, answer }: Task,
  isAnswer: (answer: string, expected: string) => boolean,
): SubGoal[] | undefined {
  if (calls === undefined || answer === undefined) return undefined;
  const wanted = calls.map(({ name, arguments: args }) => canonicalJson([name, args]));
  return [
    ...wanted.map(
      (call): SubGoal =>
        ({ action }) =>
          action.kind === 'call' && canonicalJson([action.call.name, action.call.arguments]) === call,
    ),
    ({ action }) => action.kind === 'answer' && isAnswer(action.answer, answer),
  ];
}

export interface SubGoalsOptions {
  name?: string;
  version: string;
  /** The sub-goals of a task, in the order in which they are to be attained; undefined where there are none to be said. */
  goals: (task: Task) => readonly SubGoal[] | undefined;
}

/**
 * Scores each turn: 1 for one that attains the next sub-goal, 0 for any other, so that nothing is paid twice and
 * nothing that goes in circles is paid at all (process rewards over sub-goals; Lightman et al. 2023 score the steps of
 * a solution so). The score is the part of the sub-goals that was attained.
 */
export function subGoals({ name = 'sub-goals', version, goals }: SubGoalsOptions): FastVerifier {
  return {
    name,
    version,
    tier: 'fast',
    cost: { seconds: 0, usd: 0 },
    verify: ({ task, episode }) => {
      const wanted = goals(task);
      if (wanted === undefined || wanted.length === 0) {
        return { kind: 'abstain', reason: 'the task names no sub-goals' };
      }
      let attained = 0;
      const steps = episode.turns.map((turn) => {
        const before = attained;
        for (const one of callByCall(turn)) if (wanted[attained]?.(one)) attained++;
        return attained > before ? 1 : 0;
      });
      const evidence = `${attained} of ${wanted.length} sub-goals in ${steps.length} turns`;
      return { kind: 'score', score: attained / wanted.length, steps, evidence };
    },
  };
}
