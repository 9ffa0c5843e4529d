import { partOf } from '../training/shared-error.ts';
import type { Evidence } from './alarm.ts';
import type { Diagnosis, DiagnosisSetting } from './diagnosis.ts';
import { before, errors, now, WINDOW } from './series.ts';
import type { Series } from './series.ts';

/** Of the weight of the outcome. */
const RISE = 0.1;
const FALL = 0.1;
/** Part of the rise of the reward that a reward model gives by mistake. */
const UNEARNED = 0.5;
/** With which the rule of held-out tasks speaks in a stage where success on them does not fall. */
const ERROR = 0.01;

/** Of each of the bounds: one from below and one from above for every evaluation (ADR 0024). */
export const boundError = ({ look }: Pick<DiagnosisSetting, 'look'>): number => partOf(look, ERROR / 2);

/**
 * The reward rises and what it stands for falls (Gao et al. 2023, arXiv 2210.10760). In training: the mean reward is up
 * by a tenth of what an outcome is worth, and success down by a tenth, so it is paid for something else. On held-out
 * tasks, where `evaluateBy` may ask a higher verifier than training does: success is below the best that was shown, by
 * exact bounds for all evaluations together, and has been for a window of steps, whose training reward is no lower than
 * it was then: a policy that has bad moments has them in both. Where one verifier judges both, and it has the loophole,
 * both rise, and nobody here can see it. By a reward model: what it gives more than the verifier that it stands for is up
 * by a tenth, and half or more of what the reward has risen by is that. So it is found where success stays, too, and on a
 * ladder, whose success in training is the model's own: there higher tiers have judged some, audits among them.
 */
export const rewardHacking: Diagnosis = {
  remedy:
    'Read the episodes with the highest reward. Fix the verifier, gate bonuses by the outcome, or take the minimum of several verifiers. Train a reward model again on what the policy does now, or go back to the checkpoint with the best held-out success.',
  find: (series, setting) =>
    inTraining(series, setting) ?? byRewardModel(series, setting) ?? onHeldOutTasks(series),
};

function inTraining(series: Series, { outcomeWeight }: DiagnosisSetting): Evidence[] | null {
  const [reward, success] = [now(series, 'reward'), now(series, 'success')];
  const [firstReward, firstSuccess] = [before(series, 'reward'), before(series, 'success')];
  if (reward === null || success === null || firstReward === null || firstSuccess === null) return null;
  const rise = firstReward + RISE * outcomeWeight;
  const fall = firstSuccess - FALL;
  if (reward < rise || success > fall) return null;
  return [
    { what: 'mean reward', now: reward, before: firstReward, limit: rise },
    { what: 'success in training', now: success, before: firstSuccess, limit: fall },
  ];
}

function byRewardModel(series: Series, { outcomeWeight }: DiagnosisSetting): Evidence[] | null {
  const [reward, excess] = [now(series, 'reward'), now(series, 'excess')];
  const [firstReward, firstExcess] = [before(series, 'reward'), before(series, 'excess')];
  if (reward === null || excess === null || firstReward === null || firstExcess === null) return null;
  const error = errors(series, 'excess');
  // A model that gave too little may come to give what is right.
  const limit = Math.max(0, firstExcess) + Math.max(RISE, Math.hypot(error.now, error.before));
  const unearned = outcomeWeight * (excess - firstExcess);
  const part = unearned / Math.max(unearned, reward - firstReward);
  if (excess < limit || part < UNEARNED) return null;
  return [
    { what: 'excess of the reward model', now: excess, before: firstExcess, limit },
    { what: 'part that it is of the rise of the mean reward', now: part, before: null, limit: UNEARNED },
  ];
}

function onHeldOutTasks({ look, best, fell }: Series): Evidence[] | null {
  if (look === null || best === null || look.reward === null || best.reward === null) return null;
  if (fell === null || look.stageStep - fell < WINDOW || look.reward < best.reward) return null;
  return [
    { what: 'mean reward', now: look.reward, before: best.reward, limit: best.reward },
    { what: 'held-out success', now: look.success, before: best.success, limit: best.low },
  ];
}
