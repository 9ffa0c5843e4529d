import { percent } from '../percent.ts';
import { chanceOfAtLeast, lowerBound, upperBound } from '../statistics/binomial.ts';
import { rate } from '../statistics/intervals.ts';
import type { Proportion } from '../statistics/intervals.ts';
import type { CheckpointRef } from '../refs.ts';
import type { ArmTally } from '../requests/verification.ts';
import type { CollapseAction, PlateauAction, RlStageSpec } from '../schema/stages/rl.ts';
import type { SupervisedStageSpec } from '../schema/stages/supervised.ts';
import { armName } from '../names.ts';
import { paid, partOf, planned, plannedLooks } from './shared-error.ts';
import type { SharedError } from './shared-error.ts';
import { shownSuccess } from './unjudged.ts';
import type { SuccessCriterion } from './unjudged.ts';

// A stage looks at held-out success again and again, and each look is noisy: what is decided at one look in ten by
// chance is decided by chance in most stages. So each rule has one error for all looks of the stage, 1 − its
// `confidence`, which is shared out among them (Bonferroni): that needs nothing of the looks, which judge different
// checkpoints on the same tasks. Each share is spent on an exact bound. ADR 0024 says why so.

/** What a stage's decisions look back on. */
export interface StageHistory {
  best: { success: number; checkpoint: CheckpointRef; step: number } | null;
  /** The largest lower bound of success that any evaluation had; what a collapse is measured against. */
  shown: number;
  /** The latest evaluations, as many as a plateau has, oldest first. */
  recent: Proportion[];
  rollbacks: number;
  /** What evaluations have spent of the errors of the rules; absent before the first. */
  error?: SharedError;
}

export const noHistory = (): StageHistory => ({ best: null, shown: 0, recent: [], rollbacks: 0 });

export type StageDecision =
  /** `reason`: why it has learnt nothing, where that is so by design. */
  | { kind: 'continue'; reason?: string }
  | { kind: 'graduate'; reason: string }
  | { kind: 'plateau'; action: PlateauAction; reason: string }
  | { kind: 'collapse'; action: CollapseAction; reason: string }
  | { kind: 'alarm'; action: 'rollback' | 'ask'; reason: string };

interface Rules extends Pick<RlStageSpec, 'arms' | 'plateau' | 'collapse' | 'maxSteps'> {
  graduation: Omit<RlStageSpec['graduation'], 'unjudgedAtMost'> & Pick<SuccessCriterion, 'unjudgedAtMost'>;
}

export const total = (tallies: readonly Proportion[]): Proportion => ({
  successes: tallies.reduce((sum, tally) => sum + tally.successes, 0),
  trials: tallies.reduce((sum, tally) => sum + tally.trials, 0),
});

/** How many of the trials are without success because a call made its tool fail. */
export const toolFailuresOf = (tallies: readonly ArmTally[]): number =>
  tallies.reduce((sum, tally) => sum + (tally.toolFailures ?? 0), 0);

/** A collapse that shows without an evaluation: the policy no longer explores. `entropy` in nats a token, as estimated. */
export function collapseDecision(spec: Pick<RlStageSpec, 'collapse'>, entropy: number | null): StageDecision {
  if (entropy === null || entropy >= spec.collapse.entropyBelow) return { kind: 'continue' };
  return {
    kind: 'collapse',
    action: spec.collapse.action,
    reason: `entropy ${entropy.toFixed(4)} nats is below ${spec.collapse.entropyBelow}`,
  };
}

/** What an evaluation of held-out tasks, of one trial or more, means for the stage, and the history after it. */
export function weighEvaluation(
  spec: Rules,
  history: StageHistory,
  evaluation: { arms: readonly ArmTally[]; checkpoint: CheckpointRef; step: number },
): { decision: StageDecision; history: StageHistory } {
  const { checkpoint, step } = evaluation;
  const proportion = total(evaluation.arms);
  const arms = shownSuccess(spec.arms, spec.graduation, evaluation.arms);
  const shown = total(arms);
  const success = rate(shown);
  const error = planned(spec, history, step);
  const recent = [...history.recent, proportion].slice(-spec.plateau.evaluations);
  const next: StageHistory = {
    best:
      history.best === null || success > history.best.success ? { success, checkpoint, step } : history.best,
    shown: Math.max(history.shown, lowerBound(shown, boundError(spec, error))),
    recent,
    rollbacks: history.rollbacks,
    error: paid(error, recent.length === spec.plateau.evaluations),
  };
  const toolFailures = toolFailuresOf(evaluation.arms);
  const decision = graduates(spec, error, arms) ??
    collapses(spec, error, history, proportion, toolFailures) ??
    levelsOff(spec, error, next) ?? { kind: 'continue' };
  if (decision.kind === 'continue' || toolFailures === 0) return { decision, history: next };
  const reason = `${decision.reason}; ${toolFailures} of ${proportion.trials} episodes failed at a tool, which is no success`;
  return { decision: { ...decision, reason }, history: next };
}

/** The most success that a look can show, by all of its tasks solved; `part` is its own of the error, of 1. */
export const mostThatCanBeShown = (
  { graduation: { tasks, confidence } }: Pick<RlStageSpec, 'graduation'>,
  part: number,
): number => lowerBound({ successes: tasks, trials: tasks }, part * (1 - confidence));

/** An exact binomial test that the success of this checkpoint is below the goal, with every level judged. */
function graduates(
  spec: Rules,
  { every }: SharedError,
  arms: ReturnType<typeof shownSuccess>,
): StageDecision | null {
  const { successAtLeast, confidence } = spec.graduation;
  const error = partOf(every, 1 - confidence);
  const proportion = total(arms);
  if (arms.some(({ judged }) => !judged)) return null;
  if (successAtLeast > 0 && chanceOfAtLeast(proportion, successAtLeast) > error) return null;
  const bound = percent(lowerBound(proportion, error));
  return {
    kind: 'graduate',
    reason: `held-out success ${percent(rate(proportion))}, lower bound ${bound} at ${percent(confidence)} confidence in ${plannedLooks(spec)} evaluations`,
  };
}

/** Of each of the bounds of a collapse: one from below and one from above for every look. */
const boundError = (spec: Rules, { every }: SharedError): number =>
  partOf(every, (1 - spec.collapse.confidence) / 2);

/**
 * The bounds of all looks hold together, so the largest lower one is a lower one of the best success, however the best
 * look was chosen: no luck of the best is mistaken for a fall after it. Where there is a fall only by the episodes that
 * failed at a tool, a policy that hides there and a tool that is out of order look alike: a person is asked.
 */
function collapses(
  spec: Rules,
  error: SharedError,
  { best, shown }: StageHistory,
  proportion: Proportion,
  toolFailures: number,
): StageDecision | null {
  const { successBelowBest, action, confidence } = spec.collapse;
  const hasFallen = (of: Proportion): boolean =>
    upperBound(of, boundError(spec, error)) < successBelowBest * shown;
  if (best === null || !hasFallen(proportion)) return null;
  const fallsWithoutThem = hasFallen({ ...proportion, trials: proportion.trials - toolFailures });
  return {
    kind: 'collapse',
    action: fallsWithoutThem ? action : 'ask',
    reason: `held-out success fell to ${percent(rate(proportion))} from ${percent(best.success)} at step ${best.step}, below ${percent(successBelowBest)} of it at ${percent(confidence)} confidence`,
  };
}

/**
 * No gain that is worth the while from the first half of the latest evaluations to the second. The bound of the
 * difference adds the squares of the halves' own distances to their bounds (Newcombe 1998, method 10, with exact ones).
 */
function levelsOff(
  spec: Rules,
  { windows }: SharedError,
  { best, recent }: StageHistory,
): StageDecision | null {
  const { evaluations, minImprovement, action, confidence } = spec.plateau;
  if (recent.length < evaluations) return null;
  const [earlier, later] = [recent.slice(0, evaluations / 2), recent.slice(evaluations / 2)].map(total);
  const error = partOf(windows, 1 - confidence);
  const gain = rate(later!) - rate(earlier!);
  const slack = Math.hypot(
    upperBound(later!, error) - rate(later!),
    rate(earlier!) - lowerBound(earlier!, error),
  );
  if (gain + slack >= minImprovement) return null;
  return {
    kind: 'plateau',
    action,
    reason: `held-out success gained less than ${percent(minImprovement)} within ${evaluations} evaluations at ${percent(confidence)} confidence; best ${percent(best?.success ?? 0)}`,
  };
}

interface SupervisedRules extends Pick<SupervisedStageSpec, 'arms'> {
  graduation: Omit<SupervisedStageSpec['graduation'], 'unjudgedAtMost'> &
    Pick<SuccessCriterion, 'unjudgedAtMost'>;
}

/**
 * A supervised stage graduates by what the policy can do: every arm that RL is to climb must succeed now and then, for
 * what is never sampled is never reinforced. A low loss says nothing of the kind. This is a rate, no bound: a lucky round
 * lets the next stage begin a little early.
 */
export function everyArmSucceeds(
  { arms, graduation }: SupervisedRules,
  tallies: readonly ArmTally[],
): boolean {
  const tasks = graduation.tasksPerLevel * arms.length * (graduation.enough?.samples ?? 1);
  const shown = shownSuccess(arms, { ...graduation, tasks }, tallies);
  return arms.every((arm) => {
    const one = shown.find((candidate) => armName(candidate.arm) === armName(arm));
    return one !== undefined && one.judged && rate(one) >= graduation.successAtLeast;
  });
}
