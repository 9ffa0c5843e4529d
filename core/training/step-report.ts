import { noOutcomes } from '../episode/outcome.ts';
import type { StepReport } from '../ports.ts';
import { rate } from '../statistics/intervals.ts';
import { equalGroups, sampledToLearn, trainedTokensOf } from './figures.ts';
import { sampledEntropy } from './evaluation.ts';
import { total } from './stage-policy.ts';
import type { StepFacts } from './step-facts.ts';

/** What those who watch a run are told of a step. */
export function reportOf(facts: StepFacts): StepReport {
  const { rollout, batch, learner, heldOut, decision, circumstances } = facts;
  const { stage, stageStep, maxSteps, step, environment, checkpoint, backend, estimates } = facts;
  const equal = equalGroups(facts);
  const tokens = trainedTokensOf(facts);
  return {
    stage,
    stageStep,
    maxSteps,
    step,
    environment,
    checkpoint,
    backend,
    estimates,
    meanReward:
      rollout === null || rollout.rewardCount === 0 ? null : rollout.rewardSum / rollout.rewardCount,
    trainSuccess: rollout === null || rollout.arms.length === 0 ? null : rate(total(rollout.arms)),
    heldOut: heldOut && {
      arms: heldOut.arms,
      step: stageStep,
      ...(heldOut.errorLeft !== undefined && { errorLeft: heldOut.errorLeft }),
      ...(heldOut.errorPart !== undefined && { errorPart: heldOut.errorPart }),
    },
    ...(facts.criteria && { criteria: facts.criteria }),
    metrics: learner === null ? null : { ...learner, seconds: circumstances.learnerSeconds ?? 0 },
    outcomes: rollout?.outcomes ?? noOutcomes(),
    degenerateGroups: batch?.degenerateGroups ?? 0,
    ...(equal !== null && { equalGroups: equal }),
    sampledTokens: rollout ? sampledToLearn(facts) : (heldOut?.sampledTokens ?? 0),
    ...(tokens && { taughtTokens: tokens.taught }),
    entropy: rollout === null ? null : sampledEntropy(rollout),
    turns: rollout?.turns ?? 0,
    seconds: circumstances.seconds,
    incidents: circumstances.incidents,
    ...(facts.alarms.length > 0 && { alarms: facts.alarms }),
    ...(facts.standing && { standing: facts.standing }),
    note: decision.kind === 'continue' ? null : `${decision.kind}: ${decision.reason}`,
  };
}
