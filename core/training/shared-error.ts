import type { RlStageSpec } from '../schema/stages/rl.ts';
import type { Proportion } from '../statistics/intervals.ts';

// The error of a rule is one for all looks of a stage (ADR 0024), and a person may change while it goes on how many
// looks there are (ADR 0054). What looks have spent is spent: those that are planned now share what is left of it, and
// none has a larger part than the one before it.

interface Planned extends Pick<RlStageSpec, 'maxSteps'> {
  graduation: Pick<RlStageSpec['graduation'], 'everySteps'>;
}

/** How looks share what was left of an error when they were planned. */
export interface ErrorShare {
  /** Of 1, the whole error. */
  left: number;
  /** How many looks share it, and how many of them have been made. */
  looks: number;
  made: number;
  /** What each of them spends, of 1; absent: equal parts of all that was left. */
  part?: number;
}

/** How a stage's looks share its errors, at the latest look. */
export interface SharedError {
  /** By which it was planned. */
  maxSteps: number;
  /** Of a rule that judges every look. */
  every: ErrorShare;
  /** Of one that judges windows of the latest looks. */
  windows: ErrorShare;
}

/** Evaluations that the stage makes if nothing ends it: every so many steps, and after its last. */
export const plannedLooks = (stage: Planned): number => looksAfter(stage, 0);

/** Those of them that it makes after so many steps. */
export const looksAfter = ({ maxSteps, graduation: { everySteps } }: Planned, step: number): number =>
  Math.max(0, Math.ceil(maxSteps / everySteps) - Math.floor(step / everySteps));

/** What is left of the error when the looks that were made are paid for. */
export const leftOf = (share: ErrorShare): number =>
  // What was shared out whole is spent whole, without a rounding.
  share.part === undefined
    ? share.left * (1 - share.made / share.looks)
    : Math.max(0, share.left - share.made * share.part);

/** What the next look, or the one that is being made, may spend of `error`. */
export const partOf = ({ left, looks, part }: Omit<ErrorShare, 'made'>, error: number): number =>
  part === undefined ? (error * left) / looks : error * part;

/**
 * What each look of a changed plan spends, of 1. People change a stage after they have seen its looks, and looks at the
 * same tasks resemble each other. So no part is larger than the one before, or a stage would be cut short where the next
 * look is lucky; and a plan that makes parts smaller pays for one look more than it has (ADR 0054).
 */
export const partAfter = ({ left, part }: { left: number; part: number }, looks: number): number =>
  left / looks >= part ? part : left / (looks + 1);

/** The plan that holds for a look after `step`, before it is made; `recent` are the looks of the window so far. */
export function planned(
  stage: Planned & Pick<RlStageSpec, 'plateau'>,
  { error, recent }: { error?: SharedError; recent: readonly Proportion[] },
  step: number,
): SharedError {
  const { maxSteps } = stage;
  if (error?.maxSteps === maxSteps) return error;
  // A look that could not be judged before the first one has spent nothing, and its part is nobody's.
  const looks = Math.max(1, error ? looksAfter(stage, step - 1) : plannedLooks(stage));
  const windows = Math.max(1, looks - Math.max(0, stage.plateau.evaluations - recent.length - 1));
  return { maxSteps, every: share(error?.every, looks), windows: share(error?.windows, windows) };
}

function share(before: ErrorShare | undefined, looks: number): ErrorShare {
  if (before === undefined) return { left: 1, looks, made: 0 };
  const left = leftOf(before);
  return { left, looks, made: 0, part: partAfter({ left, part: partOf(before, 1) }, looks) };
}

/** After the look; `window` where it was the end of a whole one. */
export const paid = ({ maxSteps, every, windows }: SharedError, window: boolean): SharedError => ({
  maxSteps,
  every: { ...every, made: every.made + 1 },
  windows: window ? { ...windows, made: windows.made + 1 } : windows,
});
