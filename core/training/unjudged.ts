import { armName } from '../names.ts';
import type { ArmTally } from '../requests/verification.ts';
import type { Arm } from '../schema/tasks.ts';
import type { Proportion } from '../statistics/intervals.ts';
import { evaluationTasks } from './evaluation.ts';

// What could not be judged is not missing at random: a policy may be able to bring it about. So success is bounded by the
// worst case (Manski 1990): a small part of each level may be missing, for infrastructure fails; the rest are failures.

export interface SuccessCriterion {
  /** Held-out tasks of all arms together. */
  tasks: number;
  /** Part of each level that may be missing; absent in runs that began before there was such a limit. */
  unjudgedAtMost?: number | undefined;
}

/** What an evaluation shows of an arm. */
interface Shown extends Proportion {
  arm: Arm;
  /** At least half of its tasks were judged; without that it shows nothing, whatever part may be missing. */
  judged: boolean;
}

/** What an evaluation shows of each arm: beyond the part that may be missing, tasks that were not judged are failures. */
export function shownSuccess(
  arms: readonly Arm[],
  graduation: SuccessCriterion,
  tallies: readonly (Proportion & Pick<ArmTally, 'arm'>)[],
): Shown[] {
  const { tasks, unjudgedAtMost } = graduation;
  if (unjudgedAtMost === undefined) return tallies.map((tally) => ({ ...tally, judged: true }));
  const asked = evaluationTasks({ arms: [...arms], tasks, split: 'heldout' }).map(armName);
  return arms.map((arm) => {
    const name = armName(arm);
    const { successes, trials } = tallies.find((tally) => armName(tally.arm) === name) ?? NOTHING;
    const all = Math.max(trials, asked.filter((one) => one === name).length);
    const mayMiss = Math.min(all - trials, Math.floor(unjudgedAtMost * all));
    return { arm, successes, trials: all - mayMiss, judged: 2 * trials >= all };
  });
}

const NOTHING: Proportion = { successes: 0, trials: 0 };
