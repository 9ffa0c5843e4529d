import { RandomStream } from '../random.ts';
import type { MadeTaskRef } from '../refs.ts';
import { drawAgain, taskRefOf } from './tasks-again.ts';
import type { WaitingTask } from './tasks-again.ts';
import type { ArmTally } from '../requests/verification.ts';
import type { RlStageSpec } from '../schema/stages/rl.ts';
import type { Arm } from '../schema/tasks.ts';
import { armName } from '../names.ts';

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

/** By how much late verdicts changed what a step of a stage had counted. */
export interface LateMove extends Omit<ArmTally, 'toolFailures'> {
  stage: string;
  step: number;
}

/**
 * Estimates after a step of a stage; what order the groups came in makes no difference. A move counts as much as is
 * left of what it corrects, so that estimates are those of a run whose verdicts came in time; what another stage counted
 * is in none of this one's.
 */
export function updateEstimates(
  estimates: ArmEstimates,
  tallies: readonly ArmTally[],
  late: { moves: readonly LateMove[]; stage: string; step: number },
): ArmEstimates {
  const next: ArmEstimates = {};
  const add = ({ arm, successes, trials }: Omit<ArmTally, 'toolFailures'>, part: number): void => {
    const before = next[armName(arm)] ?? { successes: 0, trials: 0 };
    next[armName(arm)] = {
      successes: before.successes + part * successes,
      trials: before.trials + part * trials,
    };
  };
  for (const [name, { successes, trials }] of Object.entries(estimates)) {
    next[name] = { successes: successes * DECAY, trials: trials * DECAY };
  }
  for (const tally of tallies) add(tally, 1);
  for (const move of late.moves) {
    if (move.stage === late.stage) add(move, DECAY ** (late.step - move.step));
  }
  // A count that is taken back may leave a rounding below zero.
  for (const [name, { successes, trials }] of Object.entries(next)) {
    next[name] = { successes: Math.max(0, successes), trials: Math.max(0, successes, trials) };
  }
  return next;
}

export interface TaskDraw {
  seed: number;
  stage: string;
  step: number;
  arms: readonly Arm[];
  count: number;
  /** Task indexes that the run's earlier stages have for themselves, and that each step has; absent: `count`. */
  tasksBefore: number;
  indexesPerStep?: number;
  /** How many of its indexes the step has used already; absent: none. */
  used?: number;
  estimates: ArmEstimates;
  /** Train tasks that wait to be drawn again, oldest first. */
  failures: readonly WaitingTask[];
  /** Part of `count` that is drawn again from `failures`. */
  retryFailures: number;
  /** Tasks made of others that the step draws as well; absent: none. */
  varied?: readonly MadeTaskRef[];
}

/** What a step draws. */
export interface Drawn {
  /** The first of them are those that are drawn again; variations follow. */
  tasks: MadeTaskRef[];
  again: WaitingTask[];
}

/** The tasks of a step. Fresh ones have indexes that no other step of the run's stages uses. */
export function drawTasks(draw: TaskDraw): Drawn {
  const { step, used = 0, indexesPerStep = draw.count } = draw;
  const place = used === 0 ? [step] : [step, used];
  const random = new RandomStream(draw.seed, 'tasks', draw.stage, ...place);
  const firstIndex = draw.tasksBefore + step * indexesPerStep + used;
  const again = drawAgain(
    draw.failures,
    Math.floor(draw.count * draw.retryFailures),
    step,
    () => new RandomStream(draw.seed, 'again', draw.stage, ...place),
  );
  const tasks: MadeTaskRef[] = [...again.map(taskRefOf), ...(draw.varied ?? [])].slice(0, draw.count);
  const weights = draw.arms.map((arm) => learnability(draw.estimates[armName(arm)]));
  for (let i = tasks.length; i < draw.count; i++) {
    const arm = draw.arms[random.weighted(weights)]!;
    tasks.push({
      environment: arm.environment,
      split: 'train',
      level: arm.level,
      index: firstIndex + i,
    });
  }
  return { tasks, again };
}

/** Task indexes that a stage may use: of its steps, which count from 1. */
export const taskIndexes = (stage: Pick<RlStageSpec, 'maxSteps' | 'groupsPerStep' | 'plan'>): number =>
  (stage.maxSteps + 1) * indexesPerStep(stage);

/** A refill draws as many tasks at most as the step has without. */
export const indexesPerStep = ({
  groupsPerStep,
  plan,
}: Pick<RlStageSpec, 'groupsPerStep' | 'plan'>): number => groupsPerStep * (1 + plan.refills);
