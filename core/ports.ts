import type { HeededAlarm } from './diagnosis/act.ts';
import type { DiagnosisName } from './diagnosis/alarm.ts';
import type { Incident } from './episode/incidents.ts';
import type { Budget } from './ladder/budget.ts';
import type { SettleResult, StepGroups } from './ladder/requests.ts';
import type {
  BatchRequest,
  BatchResult,
  ScoreRequest,
  ScoreResult,
  StoredRequest,
  StoredResult,
} from './requests/batch.ts';
import type {
  KeepReplayedRequest,
  KeepVersionRequest,
  ReplayRequest,
  TakenGroups,
  TakeRequest,
} from './requests/collect.ts';
import type {
  DemonstrationsRequest,
  SynthesizeRequest,
  SynthesizeResult,
} from './requests/demonstrations.ts';
import type { EvaluationRequest, EvaluationResult } from './requests/evaluation.ts';
import type {
  KeepVariationsRequest,
  KeptVariations,
  VariedFailures,
  VaryFailuresRequest,
} from './requests/from-failures.ts';
import type { LearnerMetrics, TrainRequest, TrainResult } from './requests/learner.ts';
import type {
  RewardBatchRequest,
  RewardExamplesRequest,
  RewardExamplesResult,
  RewardQualityRequest,
  RewardQualityResult,
} from './requests/reward-model.ts';
import type { GroupRequest } from './requests/rollout.ts';
import type { RetentionRequest } from './requests/run.ts';
import type {
  KeepProposalsRequest,
  KeptProposals,
  RewardedProposals,
  RewardProposalsRequest,
} from './requests/self-play.ts';
import type { Span } from './requests/span.ts';
import type { GroupResult, RelabelRequest, RelabelResult, ArmTally } from './requests/verification.ts';
import type { OutcomeCounts } from './episode/outcome.ts';
import type { Decision, Question } from './question.ts';
import type { BlobRef, CheckpointRef } from './refs.ts';
import type { Changed } from './run-change.ts';
import type { RewardSpec } from './schema/reward.ts';
import type { Criterion } from './training/enough.ts';
import type { ArmEstimates } from './training/task-draw.ts';
import type { StepFacts } from './training/step-facts.ts';
import type { TimeSplit } from './time/time-split.ts';

/**
 * What training needs done. The training logic in core is written against these, so that the durable run (child
 * workflows and activities) and a plain loop in one process are the same algorithm.
 */
export interface TrainingPorts {
  /** Epoch milliseconds; durable code gives replayed time. */
  now(): number;
  /** What a person has changed of the run by now; it holds from the next step on. Absent: nobody can. */
  changed?(): Changed;
  /** Rolls out and verifies groups, some at a time; a group that failed as a whole comes back with `failure`. */
  rollout(requests: readonly GroupRequest[]): Promise<GroupResult[]>;
  /** The same of tasks whose episodes are stored. Only asked where a stage collects so. */
  stored(request: StoredRequest): Promise<StoredResult>;
  /**
   * Keeps which groups a step takes, and returns what is kept: what was taken before, by another execution of the step,
   * counts. null where nothing is kept and nothing is wanted. Only asked where a stage collects asynchronously.
   */
  takeGroups(request: TakeRequest): Promise<TakenGroups | null>;
  /** Says which weights are the newest of a stage. Only asked where its episodes go on with them. */
  keepVersion(request: KeepVersionRequest): Promise<void>;
  /** Copies groups of earlier steps that a step would replay. Only asked where a stage replays. */
  replay(request: ReplayRequest): Promise<BlobRef[]>;
  /** Keeps which of them it replays, and returns their places: what was kept before counts. */
  keepReplayed(request: KeepReplayedRequest): Promise<number[]>;
  /** Only asked where the method's plan relabels. */
  relabel(request: RelabelRequest): Promise<RelabelResult>;
  /** Checks and keeps what was proposed. Only asked where a stage plays both roles, like the next. */
  keepProposals(request: KeepProposalsRequest): Promise<KeptProposals>;
  rewardProposals(request: RewardProposalsRequest): Promise<RewardedProposals>;
  /** Varies what an earlier stage failed. Only asked where a stage makes tasks of that, like the next. */
  varyFailures(request: VaryFailuresRequest): Promise<VariedFailures>;
  keepVariations(request: KeepVariationsRequest): Promise<KeptVariations>;
  evaluate(request: EvaluationRequest): Promise<EvaluationResult>;
  demonstrations(request: DemonstrationsRequest): Promise<BatchResult>;
  /** Makes the data of a supervised stage. Only asked where the stage does, before its first round. */
  synthesize(request: SynthesizeRequest): Promise<SynthesizeResult>;
  /** Only asked where the method's plan has scores. */
  score(request: ScoreRequest): Promise<ScoreResult>;
  batch(request: BatchRequest): Promise<BatchResult>;
  /** Takes a step's candidates up the verification ladder. Only asked where the spec has one. */
  escalate(request: StepEscalation): Promise<EscalatedStep>;
  /** Throws LogprobGapError where the request has a bound and the sampler is further from the learner. */
  train(request: TrainRequest): Promise<TrainResult>;
  retain(request: RetentionRequest): Promise<void>;
  /** Keeps what a step leaves behind, and tells those who watch the run of it. May return before that is done. */
  report(facts: StepFacts): Promise<void>;
  /**
   * Waits for a person, who answers one of the question's answers; `stop` also where the run is stopped meanwhile. The
   * answer is kept beside the facts of the step that asks.
   */
  ask<D extends Decision>(question: Question<D>, step: StepPlace): Promise<D | 'stop'>;
}

/** What a reward stage needs done besides. */
export interface RewardPorts extends Pick<TrainingPorts, 'now' | 'train' | 'report' | 'retain' | 'ask'> {
  /** What it learns from. */
  rewardExamples(request: RewardExamplesRequest): Promise<RewardExamplesResult>;
  /** What one of its models is shown in an epoch. */
  rewardBatch(request: RewardBatchRequest): Promise<BatchResult>;
  /** How well its models judge what they were not shown. */
  rewardQuality(request: RewardQualityRequest): Promise<RewardQualityResult>;
}

/** What was sampled is so far from the weights that learn that the step was not trained. */
export class LogprobGapError extends Error {}

/** A step of a stage, from 1. */
export type StepPlace = Pick<StepFacts, 'stage' | 'stageStep'>;

export interface StepEscalation extends StepGroups {
  /** In place of the tiers' own. */
  budgets: Record<string, Budget>;
  reward: RewardSpec;
}

/** The groups again, with the ladder's verdicts, and earlier ones whose verdicts came late. */
export type EscalatedStep = Pick<SettleResult, 'groups' | 'offered' | 'moves'> & { spans: Span[] };

/** One step of the run, for those who watch it. */
export interface StepReport {
  stage: string;
  stageStep: number;
  maxSteps: number;
  step: number;
  environment: string;
  checkpoint: CheckpointRef;
  /** Of the trainable episodes of this step; null in a warm start. */
  meanReward: number | null;
  /** Of tasks that were drawn for the first time; null where none of them could be judged. */
  trainSuccess: number | null;
  /** `errorLeft` and `errorPart` as in the facts of the step. */
  heldOut: { arms: ArmTally[]; step: number; errorLeft?: number; errorPart?: number } | null;
  /** As in the facts of the step. */
  criteria?: Criterion[];
  metrics: LearnerMetrics | null;
  backend: string | null;
  outcomes: OutcomeCounts;
  /** What the stage knows of its arms after this step; empty in a warm start. */
  estimates: ArmEstimates;
  degenerateGroups: number;
  /** Part of the groups whose rewards are all equal (σ = 0); absent where none could be compared. */
  equalGroups?: number;
  sampledTokens: number;
  /** Those of `sampledTokens` that something was learnt from; absent where nothing was sampled, or nobody counted. */
  taughtTokens?: number;
  /** Of the policy that sampled, estimated from all that it sampled; nats a token, null in a warm start. */
  entropy: number | null;
  turns: number;
  seconds: TimeSplit;
  /** What users' code did wrong in this step, if anything. */
  incidents?: Incident[];
  /** What the diagnoses have found in this step, if anything. */
  alarms?: HeededAlarm[];
  /** Names of the alarms that stand after it, if any. */
  standing?: DiagnosisName[];
  /** Decisions taken at this step, in words. */
  note: string | null;
}
