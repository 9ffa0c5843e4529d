import type { RlStageSpec } from '../spec.ts';
import type { Proportion } from '../statistics/intervals.ts';

// The error of a rule is one for all looks of a stage (ADR 0024), and a person may change while it goes on how many
// looks there are (ADR 0054). What looks have spent is spent: those that are planned now share what is left of it.

type Planned = Pick<RlStageSpec, 'maxSteps' | 'graduation'>;

/** Equal parts of what was left of an error when it was planned so. */
export interface Share {
  /** Of 1, the whole error. */
  left: number;
  /** How many looks share it, and how many of them have been made. */
  looks: number;
  made: number;
}

/** How a stage's looks share its errors, at the latest look. */
export interface SharedError {
  /** By which it was planned. */
  maxSteps: number;
  /** Of a rule that judges every look. */
  every: Share;
  /** Of one that judges windows of the latest looks. */
  windows: Share;
}

/** Evaluations that the stage makes if nothing ends it: every so many steps, and after its last. */
export const plannedLooks = (stage: Planned): number => looksAfter(stage, 0);

/** Those of them that it makes after so many steps. */
export const looksAfter = ({ maxSteps, graduation: { everySteps } }: Planned, step: number): number =>
  Math.max(0, Math.ceil(maxSteps / everySteps) - Math.floor(step / everySteps));

/** What is left of the error when the looks that were made are paid for. */
export const leftOf = ({ left, looks, made }: Share): number => left * (1 - made / looks);

/** What the next look, or the one that is being made, may spend of `error`. */
export const partOf = ({ left, looks }: Pick<Share, 'left' | 'looks'>, error: number): number =>
  (error * left) / looks;

/** The plan that holds for a look after `step`, before it is made; `recent` are the looks of the window so far. */
export function planned(
  stage: Planned & Pick<RlStageSpec, 'plateau'>,
  { error, recent }: { error?: SharedError; recent: readonly Proportion[] },
  step: number,
): SharedError {
  const { maxSteps } = stage;
  if (error?.maxSteps === maxSteps) return error;
  // A look that could not be judged before the first one has spent nothing, and its part is nobody's.
  const looks = error ? looksAfter(stage, step - 1) : plannedLooks(stage);
  const windows = looks - Math.max(0, stage.plateau.evaluations - recent.length - 1);
  const share = (before: Share | undefined, among: number): Share => ({
    left: before ? leftOf(before) : 1,
    looks: Math.max(1, among),
    made: 0,
  });
  return { maxSteps, every: share(error?.every, looks), windows: share(error?.windows, windows) };
}

/** After the look; `window` where it was the end of a whole one. */
export const paid = ({ maxSteps, every, windows }: SharedError, window: boolean): SharedError => ({
  maxSteps,
  every: { ...every, made: every.made + 1 },
  windows: window ? { ...windows, made: windows.made + 1 } : windows,
});
