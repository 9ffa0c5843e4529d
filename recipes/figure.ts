import { rate } from '../core/statistics/intervals.ts';
import { addHowSolved } from '../core/training/how-solved.ts';
import type { HowSolved } from '../core/training/how-solved.ts';
import { total } from '../core/training/stage-policy.ts';
import type { EvaluationResult } from '../core/requests.ts';

/** What a report has of every run. */
export type Report = Pick<EvaluationResult, 'arms' | 'conduct'>;

/** What a claim may compare in the place of success. */
export const FIGURE_NAMES = ['tokens', 'calls', 'unknown-tools'] as const;

export type FigureName = (typeof FIGURE_NAMES)[number];

export const FIGURES: Record<FigureName, { unit: string; of: (all: HowSolved) => number }> = {
  tokens: { unit: 'sampled tokens an episode', of: ({ tokens, episodes }) => tokens / episodes },
  calls: { unit: 'calls an episode', of: ({ calls, episodes }) => calls / episodes },
  // Who calls nothing calls nothing that is not there.
  'unknown-tools': {
    unit: 'share of calls of unknown tools',
    of: ({ unknownTools = NaN, calls }) => rate({ successes: unknownTools, trials: calls }),
  },
};

/** Throws an Error where a report has nothing to count. */
export function figureOf({ conduct = [] }: Report, name: FigureName): number {
  const value = FIGURES[name].of(addHowSolved(conduct));
  if (Number.isFinite(value)) return value;
  throw new Error(`the report has no ${FIGURES[name].unit}: no episode could be judged`);
}

/** Success on the test tasks of these levels; absent: of all. */
export const successOf = ({ arms }: Report, levels?: readonly number[]): number =>
  rate(total(arms.filter(({ arm }) => levels?.includes(arm.level) ?? true)));
