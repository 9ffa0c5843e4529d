import { defineQuery, defineSignal, defineUpdate } from '@temporalio/workflow';
import type { Decision, StepReport } from '../core/ports.ts';
import type { Arrived, ClimbReply, ClimbRequest, Swept } from '../core/ladder/requests.ts';
import type { CurriculumState } from '../core/curriculum.ts';
import type { CheckpointRef } from '../core/refs.ts';
import type { EvaluationResult } from '../core/requests.ts';
import type { TimeSplit } from '../core/time-split.ts';

/** What `temporal workflow query --type progress` answers. */
export interface Progress {
  run: string;
  /** `initialize`, `warm-start`, a stage's name, or `report`. */
  phase: string;
  status: 'running' | 'paused' | 'stopping' | 'waiting' | 'completed' | 'stopped';
  /** What the run waits for a decision on. */
  question: string | null;
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
  learnerBackend: string | null;
}

export const progress = defineQuery<Progress>('progress');

/** Waits after the step in flight. */
export const pause = defineSignal('pause');
export const resume = defineSignal('resume');
/** Ends the run after the step in flight, with its checkpoint. */
export const stop = defineSignal('stop');
/** Answers the question of a run that waits. */
export const decide = defineUpdate<Decision, [Decision]>('decide');

/** Between the workflows of a run. */
export const stepReported = defineSignal<[StepReport]>('stepReported');
export const questionAsked = defineSignal<[string | null]>('questionAsked');
export const decided = defineSignal<[Decision]>('decided');

/** Of a step to the ladder of its run, and back. */
export const climbWanted = defineSignal<[ClimbRequest]>('climbWanted');
export const climbed = defineSignal<[ClimbReply]>('climbed');
/** The run is over: the ladder ends when nothing is waited for. */
export const ladderClosed = defineSignal('ladderClosed');
/** A sweep brought these verdicts. */
export const ladderSwept = defineSignal<[Swept[]]>('ladderSwept');
export const verdictArrived = defineSignal<[Arrived]>('verdictArrived');
