import { rate, wilsonLower } from './intervals.ts';
import type { Proportion } from './intervals.ts';
import type { CheckpointRef } from './refs.ts';
import type { ArmTally } from './requests.ts';
import type { CollapseAction, PlateauAction, StageSpec, WarmStartSpec } from './spec.ts';
import { armName } from './names.ts';

/** What a stage's decisions look back on. */
export interface StageHistory {
  best: { success: number; checkpoint: CheckpointRef; step: number } | null;
  /** The success that the next improvement is measured against; null before the first evaluation. */
  improvedTo: number | null;
  evaluationsSinceBest: number;
  rollbacks: number;
}

export type StageDecision =
  | { kind: 'continue' }
  | { kind: 'graduate'; reason: string }
  | { kind: 'plateau'; action: PlateauAction; reason: string }
  | { kind: 'collapse'; action: CollapseAction; reason: string };

export const total = (tallies: readonly ArmTally[]): Proportion => ({
  successes: tallies.reduce((sum, tally) => sum + tally.successes, 0),
  trials: tallies.reduce((sum, tally) => sum + tally.trials, 0),
});

const percent = (x: number): string => `${(100 * x).toFixed(1)} %`;

/** A collapse that shows without an evaluation: the policy no longer explores. */
export function entropyCollapse(spec: Pick<StageSpec, 'collapse'>, entropy: number | null): StageDecision {
  if (entropy === null || entropy >= spec.collapse.entropyBelow) return { kind: 'continue' };
  return {
    kind: 'collapse',
    action: spec.collapse.action,
    reason: `entropy ${entropy.toFixed(4)} nats is below ${spec.collapse.entropyBelow}`,
  };
}

/** What an evaluation of held-out tasks means for the stage, and the history after it. */
export function judgeEvaluation(
  spec: Pick<StageSpec, 'graduation' | 'plateau' | 'collapse'>,
  history: StageHistory,
  evaluation: { arms: readonly ArmTally[]; checkpoint: CheckpointRef; step: number },
): { decision: StageDecision; history: StageHistory } {
  const proportion = total(evaluation.arms);
  const success = rate(proportion);
  // Against the last improvement, not against the best: many small gains in a row are no plateau.
  const improved =
    history.improvedTo === null ||
    (success > history.improvedTo && success >= history.improvedTo + spec.plateau.minImprovement);
  const next: StageHistory = {
    best:
      history.best === null || success > history.best.success
        ? { success, checkpoint: evaluation.checkpoint, step: evaluation.step }
        : history.best,
    improvedTo: improved ? success : history.improvedTo,
    evaluationsSinceBest: improved ? 0 : history.evaluationsSinceBest + 1,
    rollbacks: history.rollbacks,
  };
  return { decision: decide(spec, history, proportion, next), history: next };
}

function decide(
  spec: Pick<StageSpec, 'graduation' | 'plateau' | 'collapse'>,
  before: StageHistory,
  proportion: Proportion,
  after: StageHistory,
): StageDecision {
  const success = rate(proportion);
  const lower = wilsonLower(proportion, spec.graduation.confidence);
  if (lower >= spec.graduation.successAtLeast) {
    return {
      kind: 'graduate',
      reason: `held-out success ${percent(success)}, lower bound ${percent(lower)} at ${percent(spec.graduation.confidence)} confidence`,
    };
  }
  if (before.best !== null && success < spec.collapse.successBelowBest * before.best.success) {
    return {
      kind: 'collapse',
      action: spec.collapse.action,
      reason: `held-out success fell to ${percent(success)} from ${percent(before.best.success)} at step ${before.best.step}`,
    };
  }
  if (after.evaluationsSinceBest >= spec.plateau.evaluations) {
    return {
      kind: 'plateau',
      action: spec.plateau.action,
      reason: `no gain of ${percent(spec.plateau.minImprovement)} in ${after.evaluationsSinceBest} evaluations; best ${percent(after.best?.success ?? 0)}`,
    };
  }
  return { kind: 'continue' };
}

/**
 * A warm start graduates by what it can do: every arm that RL is to climb must succeed now and then, for what is
 * never sampled is never reinforced. A low loss says nothing of the kind.
 */
export function warmStartGraduates(
  spec: Pick<WarmStartSpec, 'arms' | 'graduation'>,
  tallies: readonly ArmTally[],
): boolean {
  return spec.arms.every((arm) => {
    const tally = tallies.find((candidate) => armName(candidate.arm) === armName(arm));
    return tally !== undefined && rate(tally) >= spec.graduation.successAtLeast;
  });
}
