import { SAME } from './alike.ts';
import type { Alike } from './alike.ts';
import type { Evidence } from './alarm.ts';
import type { Diagnosis } from './diagnosis.ts';

/** Part of the groups in which a judge that tells answers apart gives some sample another score. */
const OTHERS = 0.1;
/** With which the rule speaks in a stage whose judge does so, whatever was seen before, at any of its steps. */
const ERROR = 0.01;
/** Variance of the verifier's scores where a twentieth of them is 0 and the others are 1, or the other way round. */
const DIFFER = 0.05 * 0.95;

/**
 * A verifier, or the model in its place, gives everything the same score. Other components of the reward may differ, so
 * that groups have contrast, and what is learned is something else. Scores of 0 or 1 alone say nothing of a verifier:
 * a policy may fail all tasks, or keep all manners. So a model is named where the verifier, on the same episodes,
 * says different things; and whoever judges where the score is neither 0 nor 1.
 *
 * Where each group has another score with a probability of a tenth or more, whatever came before, n groups are all
 * like the first one with (1 − 0.1)^(n − 1) at most. Step s may spend 0.01 / (48 s (s + 1)) on each component, which is
 * 0.01 at most in sum over all steps and components, however long the stage is.
 */
export const constantJudge: Diagnosis = {
  remedy:
    'Read what it says of some good and some bad episodes. Fix its prompt or its code, train the reward model on episodes of both kinds, or take its component out of the reward.',
  find({ alike = {}, stageStep = 0 }) {
    if (stageStep === 0) return null;
    const part = ERROR / (MOST_COMPONENTS * stageStep * (stageStep + 1));
    const found = Object.entries(alike).find(
      ([, judge]) => (1 - OTHERS) ** Math.max(0, judge.groups - 1) <= part && isTelling(judge),
    );
    return found ? evidenceOf(...found) : null;
  },
};

/** A reward has 32 verifiers and 16 rules at most. */
const MOST_COMPONENTS = 48;

/** Whether it is no score that everything may have earned. */
function isTelling(judge: Alike): boolean {
  const { lowest, highest, model, compared } = judge;
  if (lowest > SAME && highest < 1 - SAME) return true;
  return model && compared > 0 && varianceOf(judge) >= DIFFER;
}

/** Of the verifier's scores: its own differ by no more than what is the same, so that the difference varies as they do. */
const varianceOf = ({ compared, excess, squaredError }: Alike): number =>
  squaredError / compared - (excess / compared) ** 2;

function evidenceOf(name: string, judge: Alike): Evidence[] {
  const { lowest, highest, groups, model, compared } = judge;
  const apart: Evidence = {
    what: `distance of the scores of ${name} in ${groups} groups, all near ${Number(lowest.toPrecision(3))}`,
    now: highest - lowest,
    before: null,
    limit: SAME,
  };
  if (!model || compared === 0) return [apart];
  const verifier = 'variance of what the verifier says of the same episodes';
  return [apart, { what: verifier, now: varianceOf(judge), before: null, limit: DIFFER }];
}
