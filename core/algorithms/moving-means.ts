import { groupBy } from '../group-by.ts';
import { meanOf } from '../statistics/standardized.ts';

/** Moving means of rewards, by environment and level (`armName`): what earlier steps leave to the next one's advantages. */
export type MovingMeans = Readonly<Record<string, number>>;

/** SPIRAL's (Liu et al. 2025, arXiv 2506.24119). */
export const USUAL_DECAY = 0.95;

/** What a sample has earned, and where. */
export interface Earned {
  arm: string;
  reward: number;
}

/** What each arm's rewards are compared with: its mean before the step, or that of the step where it has none yet. */
export const baselinesOf = (earned: readonly Earned[], before: MovingMeans): MovingMeans => ({
  ...meansOf(earned),
  ...before,
});

/**
 * The means after a step. Of an arm with n samples of mean r̄ it is m ← d^n m + (1 − d^n) r̄: as much is left of the mean
 * as after n updates, one a sample, and the order of samples has no part in it.
 */
export function movedMeans(earned: readonly Earned[], before: MovingMeans, decay: number): MovingMeans {
  const moved = { ...before };
  const counts = groupBy(earned, ({ arm }) => arm);
  for (const [arm, own] of Object.entries(meansOf(earned))) {
    const kept = arm in before ? decay ** counts.get(arm)!.length : 0;
    moved[arm] = kept === 0 ? own : kept * before[arm]! + (1 - kept) * own;
  }
  return moved;
}

const meansOf = (earned: readonly Earned[]): Record<string, number> =>
  Object.fromEntries(
    [...groupBy(earned, ({ arm }) => arm)].map(([arm, own]) => [
      arm,
      meanOf(own.map(({ reward }) => reward)),
    ]),
  );
