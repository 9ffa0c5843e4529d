import { percent } from '../../../core/percent.ts';

/** How well a run did after some RL steps, and when. */
export interface CurvePoint {
  /** RL steps done. */
  step: number;
  /** Wall seconds of training so far. */
  seconds: number;
  /** On held-out tasks, in [0, 1]. */
  success: number;
}

/** The first point after its start at which a run had reached the target; undefined where it never did. */
export function reachedAt(curve: readonly CurvePoint[], target: number): CurvePoint | undefined {
  return curve.find(({ step, success }) => step > 0 && success >= target);
}

/** `40 steps, 52.1 s: 90.4 %` */
export function showPoint({ step, seconds, success }: CurvePoint): string {
  return `${step} steps, ${seconds.toFixed(1)} s: ${percent(success)}`;
}

interface Comparison {
  /** Seconds of the anchor to the target; where it did not reach it, those that it was given and used up. */
  seconds: number;
  /** In words, for the name of the row. */
  outcome: string;
}

/**
 * Compares the time to the target with `ours`, the point at which ours had reached it. An anchor that has used up its
 * bound without reaching it is told of as it is: then the ratio of the two is a least one.
 * Throws Error where it neither reached the target nor used up `bound` times our time.
 */
export function compareToTarget(
  ours: CurvePoint,
  anchor: readonly CurvePoint[],
  { target, bound }: { target: number; bound: number },
): Comparison {
  const reached = reachedAt(anchor, target);
  if (reached) {
    return { seconds: reached.seconds, outcome: `ours in ${ours.step} RL steps, TRL in ${reached.step}` };
  }
  const last = anchor.at(-1);
  if (!last || last.seconds < bound * ours.seconds) {
    throw new Error('the anchor was stopped before it had reached the target or its bound');
  }
  return {
    seconds: last.seconds,
    outcome: `ours in ${ours.step} RL steps, TRL not within its bound (${showPoint(last)}): the ratio is at least this`,
  };
}
