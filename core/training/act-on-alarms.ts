import { act } from '../diagnosis/act.ts';
import type { Adjusted, HeededAlarm } from '../diagnosis/act.ts';
import { DIAGNOSES } from '../diagnosis/alarm.ts';
import type { DiagnosisName } from '../diagnosis/alarm.ts';
import { diagnose } from '../diagnosis/diagnose.ts';
import type { Diagnosed } from '../diagnosis/diagnose.ts';
import type { DiagnosisSetting } from '../diagnosis/diagnosis.ts';
import { alarmed, withMeasurement } from '../diagnosis/healthy.ts';
import type { Healthy } from '../diagnosis/healthy.ts';
import { temperatureMoves } from './exploration.ts';
import type { StageInput, StageState } from './stage.ts';
import { plannedLooks } from './shared-error.ts';
import type { SharedError } from './shared-error.ts';
import type { StageDecision, StageHistory } from './stage-policy.ts';
import type { StepFacts } from './step-facts.ts';
import type { Plan } from '../algorithms/method.ts';

/** What the diagnoses must know of a stage besides its facts. */
export const settingOf = (
  { spec: { reward, verification }, stage }: StageInput,
  stageStep: number,
  error: SharedError | undefined,
): DiagnosisSetting => ({
  outcomeWeight: reward.components.find(({ role }) => role === 'outcome')?.weight ?? 1,
  lateEpisodes: (verification?.offerLateFor ?? 0) > 0,
  klTo: stage.plan.teachers.length > 0 ? 'teachers' : 'reference',
  clipsSequences: stage.plan.objective.kind === 'gspo',
  contrast: stage.plan.contrast ?? 'task',
  temperatureMoves: temperatureMoves(stage, stageStep),
  asynchronous: aheadOf(stage),
  look: error?.every ?? { left: 1, looks: plannedLooks(stage) },
});

/** How far ahead of its learner an asynchronous stage may be. */
function aheadOf({ collect, groupsPerStep }: StageInput['stage']): DiagnosisSetting['asynchronous'] {
  if (collect.kind !== 'asynchronous' || collect.maxStaleness === 0) return null;
  const { maxStaleness, inFlight = Infinity } = collect;
  return { maxStaleness, inFlight: inFlight / groupsPerStep };
}

export interface Heeded {
  decision: StageDecision;
  alarms: HeededAlarm[];
  /** Those that were raised now or before, and hold. */
  standing: DiagnosisName[];
  /** For the steps to come. */
  state: { diagnosed: Diagnosed; healthy: Healthy; adjusted: Adjusted };
}

/** Where only success and failure make a contrast, groups that all succeed or all fail have none, however they are paid. */
function asMethodSees<Facts extends Pick<StepFacts, 'rollout'>>(
  facts: Facts,
  { refillBy }: Pick<Plan, 'refillBy'>,
): Facts {
  const { rollout } = facts;
  if (refillBy !== 'correctness' || rollout?.mixedGroups === undefined) return facts;
  return { ...facts, rollout: { ...rollout, equalRewards: rollout.rewardGroups - rollout.mixedGroups } };
}

/**
 * Reads a step's facts for what goes wrong, and does what the stage's rules say. What held-out success has decided
 * comes first: an alarm decides where the stage would go on.
 */
export function actOnAlarms(
  input: StageInput,
  state: Pick<StageState, 'diagnosed' | 'healthy' | 'adjusted'>,
  facts: Omit<StepFacts, 'decision' | 'alarms'>,
  { decision, history }: { decision: StageDecision; history: StageHistory },
): Heeded {
  const { diagnosed, alarms } = diagnose(
    state.diagnosed,
    asMethodSees(facts, input.stage.plan),
    settingOf(input, facts.stageStep, history.error),
  );
  const acted = act(alarms, input.stage.diagnosis, state.adjusted);
  const place = { checkpoint: facts.checkpoint, stageStep: facts.stageStep };
  const standing = DIAGNOSES.filter((name) => diagnosed.standing[name] !== undefined);
  return {
    decision:
      decision.kind === 'continue' && acted.decision !== null
        ? { kind: 'alarm', ...acted.decision }
        : decision,
    alarms: acted.alarms,
    standing,
    state: {
      diagnosed,
      healthy:
        standing.length > 0
          ? alarmed(state.healthy, facts.stageStep)
          : facts.heldOut === null
            ? state.healthy
            : withMeasurement(state.healthy, place),
      adjusted: acted.adjusted,
    },
  };
}
