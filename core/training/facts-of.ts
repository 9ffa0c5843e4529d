import type { Question } from '../question.ts';
import type { BatchResult } from '../requests/batch.ts';
import type { EvaluationResult } from '../requests/evaluation.ts';
import type { TrainResult } from '../requests/learner.ts';
import type { Collected } from './collect-rollouts.ts';
import type { RolloutSummary } from './evaluation.ts';
import { leftOf, partOf } from './shared-error.ts';
import type { SharedError } from './shared-error.ts';
import type { StageDecision } from './stage-policy.ts';
import type { BatchFacts, DecisionFacts, HeldOutFacts, RolloutFacts, StepFacts } from './step-facts.ts';

// Parts of a step's facts, of what was done in it.

/** `besides`: of what was sampled and is in no count of the summary. */
export function rolloutFacts(
  summary: RolloutSummary,
  { otherTokens = 0, hinted }: Partial<Pick<Collected, 'otherTokens' | 'hinted'>> = {},
): RolloutFacts {
  const { behaviour, failures, failedTasks: _, tried: __, incidents: ___, ...counts } = summary;
  return {
    ...counts,
    ...behaviour,
    ...(otherTokens > 0 && { otherTokens }),
    ...(hinted && { hinted }),
    failedGroups: failures,
  };
}

export const batchFacts = (made: BatchResult | null): BatchFacts | null =>
  made && {
    sequences: made.sequences,
    tokens: made.tokens,
    maskedTokens: made.maskedTokens,
    ...(made.taughtTokens !== undefined && { taughtTokens: made.taughtTokens }),
    degenerateGroups: made.degenerateGroups,
    ...(made.trees !== undefined && { trees: made.trees }),
    ...(made.scales && { scales: made.scales }),
  };

/** `error` is how the stage's looks share its errors after this one; a warm start has no such rules. */
export const heldOutFacts = (measured: EvaluationResult | null, error?: SharedError): HeldOutFacts | null =>
  measured && {
    arms: measured.arms,
    outcomes: measured.outcomes,
    meanReward: measured.meanReward,
    sampledTokens: measured.sampledTokens,
    ...(measured.conduct && { conduct: measured.conduct }),
    ...(error && { errorLeft: leftOf(error.every), errorPart: partOf(error.every, 1) }),
  };

/** What was measured while learning, with the time that it took told apart. */
export function learnerFacts(
  trained: TrainResult | null,
  circumstances: Omit<StepFacts['circumstances'], 'learnerSeconds'>,
): Pick<StepFacts, 'backend' | 'learner' | 'circumstances'> {
  if (trained === null) {
    return { backend: null, learner: null, circumstances: { ...circumstances, learnerSeconds: null } };
  }
  const { seconds, ...learner } = trained.metrics;
  return { backend: trained.backend, learner, circumstances: { ...circumstances, learnerSeconds: seconds } };
}

/** `question` is what a person was asked in place of what a rule orders; null where nobody was. */
export function decisionFacts(decision: StageDecision, question: Question | null): DecisionFacts {
  const action = 'action' in decision ? decision.action : null;
  return {
    kind: decision.kind,
    reason: decision.reason ?? null,
    action: question === null ? action : 'ask',
    question,
  };
}
