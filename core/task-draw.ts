import { RandomStream } from './random.ts';
import type { TaskRef } from './refs.ts';
import type { Arm } from './spec.ts';
import { armName } from './names.ts';

/** What a stage remembers of an arm: successes and trials, decayed so that the estimate follows the policy. */
export interface ArmEstimate {
  successes: number;
  trials: number;
}

export type ArmEstimates = Record<string, ArmEstimate>;

/** No arm is starved: this part of p(1 − p)'s maximum is added to each weight. */
const FLOOR = 0.05;
/** Per step: estimates forget with a half-life of about seven steps. */
const DECAY = 0.9;

/**
 * An arm's weight: learnability p(1 − p), the variance of a success, which is what group-relative advantages learn
 * from; largest where the policy succeeds half of the time. Success is smoothed by one success and one failure.
 */
export function learnability(estimate: ArmEstimate | undefined): number {
  const successes = (estimate?.successes ?? 0) + 1;
  const trials = (estimate?.trials ?? 0) + 2;
  const p = successes / trials;
  return p * (1 - p) + FLOOR;
}

/** Estimates after a step's tallies; what order the groups came in makes no difference. */
export function updateEstimates(
  estimates: ArmEstimates,
  tallies: readonly { arm: Arm; successes: number; trials: number }[],
): ArmEstimates {
  const next: ArmEstimates = {};
  for (const [name, estimate] of Object.entries(estimates)) {
    next[name] = { successes: estimate.successes * DECAY, trials: estimate.trials * DECAY };
  }
  for (const { arm, successes, trials } of tallies) {
    const before = next[armName(arm)] ?? { successes: 0, trials: 0 };
    next[armName(arm)] = { successes: before.successes + successes, trials: before.trials + trials };
  }
  return next;
}

export interface TaskDraw {
  seed: number;
  stage: string;
  step: number;
  arms: readonly Arm[];
  count: number;
  estimates: ArmEstimates;
  /** Train tasks failed lately, oldest first. */
  failures: readonly TaskRef[];
  /** Part of `count` that is drawn again from `failures`. */
  retryFailures: number;
}

/** The tasks of a step and the failures that were not taken. Fresh tasks have indexes that no other step of the stage uses. */
export function drawTasks(draw: TaskDraw): { tasks: TaskRef[]; failures: TaskRef[] } {
  const random = new RandomStream(draw.seed, 'tasks', draw.stage, draw.step);
  const retries = Math.min(draw.failures.length, Math.floor(draw.count * draw.retryFailures));
  const tasks = draw.failures.slice(0, retries);
  const weights = draw.arms.map((arm) => learnability(draw.estimates[armName(arm)]));
  const total = weights.reduce((a, b) => a + b, 0);
  for (let i = retries; i < draw.count; i++) {
    let at = random.uniform() * total;
    let chosen = draw.arms.length - 1;
    for (let a = 0; a < weights.length; a++) {
      at -= weights[a]!;
      if (at < 0) {
        chosen = a;
        break;
      }
    }
    const arm = draw.arms[chosen]!;
    tasks.push({
      environment: arm.environment,
      split: 'train',
      level: arm.level,
      index: draw.step * draw.count + i,
    });
  }
  return { tasks, failures: draw.failures.slice(retries) };
}
