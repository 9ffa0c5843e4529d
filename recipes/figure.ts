import { rate } from '../core/statistics/intervals.ts';
import { addHowSolved } from '../core/training/how-solved.ts';
import type { HowSolved } from '../core/training/how-solved.ts';
import { total } from '../core/training/stage-policy.ts';
import type { EvaluationResult } from '../core/requests/evaluation.ts';
import type { SelfPlayFacts, StepFacts } from '../core/training/step-facts.ts';

/** What there is of every run: its report, and the steps of its last stage. */
export type Report = Pick<EvaluationResult, 'arms' | 'conduct'> & {
  lastStage?: readonly Pick<StepFacts, 'rollout'>[];
};

/** What a claim may compare in the place of success. */
export const FIGURE_NAMES = ['tokens', 'calls', 'unknown-tools', 'kinds', 'label-accuracy'] as const;

export type FigureName = (typeof FIGURE_NAMES)[number];

/** Of all test episodes, and of self-play in the steps of the last stage. */
type Figure = { unit: string; of: (all: HowSolved, played: readonly SelfPlayFacts[]) => number };

export const FIGURES: Record<FigureName, Figure> = {
  tokens: { unit: 'sampled tokens an episode', of: ({ tokens, episodes }) => tokens / episodes },
  calls: { unit: 'calls an episode', of: ({ calls, episodes }) => calls / episodes },
  // Who calls nothing calls nothing that is not there.
  'unknown-tools': {
    unit: 'share of calls of unknown tools',
    of: ({ unknownTools = NaN, calls }) => rate({ successes: unknownTools, trials: calls }),
  },
  // Kinds are counted within a step.
  kinds: {
    unit: 'kinds of task a proposal',
    of: (_, played) => sum(played, ({ kinds = NaN }) => kinds) / sum(played, ({ proposals }) => proposals),
  },
  // Where nothing has a label, none is right.
  'label-accuracy': {
    unit: 'share of labels that are right',
    of: (_, played) =>
      played.length === 0
        ? NaN
        : rate({
            successes: sum(played, ({ labels }) => labels?.right ?? NaN),
            trials: sum(played, ({ labels }) => labels?.checked ?? NaN),
          }),
  },
};

/** Throws an Error where there is nothing to count. */
export function figureOf({ conduct = [], lastStage = [] }: Report, name: FigureName): number {
  const played = lastStage.flatMap(({ rollout }) => rollout?.selfPlay ?? []);
  const value = FIGURES[name].of(addHowSolved(conduct), played);
  if (Number.isFinite(value)) return value;
  throw new Error(
    `the report has no ${FIGURES[name].unit}: no episode could be judged, or its last stage has no self-play`,
  );
}

const sum = (played: readonly SelfPlayFacts[], of: (one: SelfPlayFacts) => number): number =>
  played.reduce((total, one) => total + of(one), 0);

/** Success on the test tasks of these levels; absent: of all. */
export const successOf = ({ arms }: Report, levels?: readonly number[]): number =>
  rate(total(arms.filter(({ arm }) => levels?.includes(arm.level) ?? true)));
