import type { StepFacts } from '../training/step-facts.ts';
import { total } from '../training/stage-policy.ts';
import { DIAGNOSES } from './alarm.ts';
import type { Alarm, DiagnosisName } from './alarm.ts';
import type { Diagnosis, DiagnosisSetting } from './diagnosis.ts';
import { constantJudge } from './constant-judge.ts';
import { emptyBatch } from './empty-batch.ts';
import { echoTrap } from './echo-trap.ts';
import { entropyCollapse } from './entropy-collapse.ts';
import { klBlowUp } from './kl-blow-up.ts';
import { lengthExplosion } from './length-explosion.ts';
import { loops } from './loops.ts';
import { lowEss } from './low-ess.ts';
import { missingMask } from './missing-mask.ts';
import { noContrast } from './no-contrast.ts';
import { boundError, rewardHacking } from './reward-hacking.ts';
import { AGO, extended, noSeries, WINDOW, withoutRecent } from './series.ts';
import type { Series } from './series.ts';
import { signalsOf } from './signals.ts';
import { staleSamples } from './stale-samples.ts';
import { toolErrors } from './tool-errors.ts';
import { toolHallucination } from './tool-hallucination.ts';
import { truncation } from './truncation.ts';

const BY_NAME: Record<DiagnosisName, Diagnosis> = {
  'missing-mask': missingMask,
  'no-contrast': noContrast,
  'empty-batch': emptyBatch,
  'constant-judge': constantJudge,
  'echo-trap': echoTrap,
  'entropy-collapse': entropyCollapse,
  'kl-blow-up': klBlowUp,
  'low-ess': lowEss,
  'stale-samples': staleSamples,
  'reward-hacking': rewardHacking,
  'length-explosion': lengthExplosion,
  truncation,
  'tool-hallucination': toolHallucination,
  'tool-errors': toolErrors,
  loops,
};

/** An alarm that still holds is raised once more after so many steps. */
export const AGAIN = AGO;

/** What a stage carries from step to step for its diagnoses: a few numbers of each signal. */
export interface Diagnosed {
  series: Series;
  /** Alarms that were found lately: at which step of the stage they were raised, and found the last time. */
  standing: Partial<Record<DiagnosisName, { raised: number; found: number }>>;
}

export const undiagnosed = (): Diagnosed => ({ series: noSeries(), standing: {} });

/**
 * Takes a step's facts into account. `alarms` are those that are raised at this step: an alarm is raised when it is
 * found, and not again for `AGAIN` steps unless it was gone for a whole window.
 */
export function diagnose(
  { series, standing }: Diagnosed,
  facts: Pick<StepFacts, 'stageStep' | 'rollout' | 'batch' | 'learner' | 'heldOut'> &
    Partial<Pick<StepFacts, 'estimates'>>,
  setting: DiagnosisSetting,
): { diagnosed: Diagnosed; alarms: Alarm[] } {
  const { stageStep } = facts;
  const heldOut = facts.heldOut === null ? null : total(facts.heldOut.arms);
  const told = signalsOf(facts);
  const signals = setting.temperatureMoves ? { ...told, entropy: null } : told;
  const step = { stageStep, signals, rollout: facts.rollout, heldOut, estimates: facts.estimates ?? {} };
  const next: Diagnosed = { series: extended(series, step, boundError(setting)), standing: {} };
  const alarms: Alarm[] = [];
  for (const name of DIAGNOSES) {
    const { find, remedy } = BY_NAME[name];
    const evidence = find(next.series, setting);
    const stood = standing[name];
    if (evidence === null) {
      if (stood && stageStep - stood.found < WINDOW) next.standing[name] = stood;
      continue;
    }
    const isNew = stood === undefined || stageStep - stood.raised >= AGAIN;
    next.standing[name] = { raised: isNew ? stageStep : stood.raised, found: stageStep };
    if (isNew) alarms.push({ name, stageStep, evidence, remedy });
  }
  return { diagnosed: next, alarms };
}

/** After a roll-back: what was found of the policy that is left behind is no longer so. */
export const rolledBack = ({ series }: Diagnosed): Diagnosed => ({
  series: withoutRecent(series),
  standing: {},
});
