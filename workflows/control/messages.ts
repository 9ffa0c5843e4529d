import { defineQuery, defineSignal, defineUpdate } from '@temporalio/workflow';
import type { StepReport } from '../../core/ports.ts';
import type { Decided, Decision, OpenQuestion } from '../../core/question.ts';
import type { HeededAlarm } from '../../core/diagnosis/act.ts';
import type { Incident } from '../../core/episode/incidents.ts';
import type {
  Arrived,
  EscalationFailure,
  EscalationReply,
  EscalationRequest,
  Swept,
} from '../../core/ladder/requests.ts';
import type { CurriculumState } from '../../core/training/curriculum.ts';
import type { CheckpointRef } from '../../core/refs.ts';
import type { EvaluationResult } from '../../core/requests/evaluation.ts';
import type { RetryReport, Retrying } from '../../core/retrying.ts';
import type { Changed, StoredChange, RunChange } from '../../core/run-change.ts';
import type { TrainedTokens } from '../../core/training/figures.ts';
import type { TimeSplit } from '../../core/time/time-split.ts';

/** An alarm of a run, with the stage whose it is. */
export interface RunAlarm extends HeededAlarm {
  stage: string;
}

/** What `temporal workflow query --type progress` answers. */
export interface Progress {
  run: string;
  /** `initialize`, a stage's name, or `report`. */
  phase: string;
  status:
    | 'running'
    | 'paused'
    | 'stopping'
    | 'waiting'
    | 'completed'
    | 'no-success'
    | 'stopped'
    | 'cancelled'
    | 'failed';
  /** Why the run failed. */
  failure: string | null;
  /** What the run waits for a decision on, with the answers that can be given. */
  question: OpenQuestion | null;
  stages: string[];
  step: StepReport | null;
  /** The newest held-out measurement and the step of the run at which it was made. */
  heldOut: StepReport['heldOut'];
  before: EvaluationResult | null;
  after: EvaluationResult | null;
  checkpoint: CheckpointRef | null;
  finished: CurriculumState['stages'];
  /** Wall seconds of all steps so far, by part. */
  seconds: TimeSplit;
  /** What each stage that samples has sampled to learn from so far, and what of it taught; absent in older versions. */
  tokens?: Record<string, TrainedTokens>;
  learnerBackend: string | null;
  /** Activities at their third attempt or a later one. */
  retrying: Retrying[];
  /** What users' code did wrong in the run so far: whose, how often, and what was said last. */
  incidents: Incident[];
  /** What the diagnoses have found: the newest eight. */
  alarms: RunAlarm[];
  /** Signals that no run has, with the nearest name: the newest eight. They were ignored. */
  unknownSignals: string[];
  /** What people have changed of the run: the newest eight. All of them are in the store. */
  changes: StoredChange[];
}

export const progress = defineQuery<Progress>('progress');

/** Waits after the step in flight. */
export const pause = defineSignal('pause');
export const resume = defineSignal('resume');
/** Ends the run after the step in flight, with its checkpoint. */
export const stop = defineSignal('stop');
/**
 * Answers the question of a run that waits, by one of its answers. Who also gives the question's id answers that one or
 * none: another person may have been quicker, and the run may ask something else by now.
 */
export const decide = defineUpdate<Decision, [answer: Decision, question?: string]>('decide');

/**
 * Changes limits of a run that goes on, from the next step on. Answers when the change is in the run's record, with what
 * lies there.
 */
export const change = defineUpdate<StoredChange, [RunChange]>('change');

/** Between the workflows of a run. */

/** Of the run to its stage: all that holds now of what people have changed. */
export const changesMade = defineSignal<[Changed]>('changesMade');
/** A step, with what it took and brought, and those before it that were not reported. */
export interface ReportedStep extends StepReport {
  secondsSince: TimeSplit;
  /** Absent where nothing was sampled, or an older version tells. */
  tokensSince?: TrainedTokens;
}
export const stepReported = defineSignal<[ReportedStep]>('stepReported');
export const questionAsked = defineSignal<[OpenQuestion]>('questionAsked');
export const decided = defineSignal<[Decided]>('decided');

/** Of a worker to the run. */
export const activityRetried = defineSignal<[RetryReport]>('activityRetried');

/** Of a step to the ladder of its run, and back. */
export const escalationWanted = defineSignal<[EscalationRequest]>('climbWanted');
/** A step still waits for its ladder: asks nothing, and fails where there is none. */
export const escalationAwaited = defineSignal('climbAwaited');
export const escalated = defineSignal<[EscalationReply]>('climbed');
export const escalationFailed = defineSignal<[EscalationFailure]>('climbFailed');
/** The run has come to its end: the ladder ends when nothing is waited for. */
export const ladderClosed = defineSignal('ladderClosed');
/** The run was reset: what it has told the ladder of its end holds no more. */
export const ladderReopened = defineSignal('ladderReopened');
/** The run failed or was cancelled: the ladder ends. */
export const runGone = defineSignal('runGone');
/** A sweep brought these verdicts. */
export const ladderSwept = defineSignal<[Swept[]]>('ladderSwept');
export const verdictArrived = defineSignal<[Arrived]>('verdictArrived');
