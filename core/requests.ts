import type { OutcomeCounts } from './outcome.ts';
import type { BlobRef, CheckpointRef, Split, TaskRef } from './refs.ts';
import type {
  AlgorithmSpec,
  Arm,
  LearnerSpec,
  LoraSpec,
  ModelSource,
  OptimizerSpec,
  RetentionSpec,
  RewardSpec,
  SamplingSpec,
  VerificationSpec,
} from './spec.ts';

// What workflows ask of activities and of each other: references and small facts, never tokens or weights.

/** Wall time that an activity spent on one part of the work, epoch milliseconds. */
export interface Span {
  part: 'rollout' | 'tool' | 'verification' | 'learner' | 'data';
  start: number;
  end: number;
}

/** Groups that are rolled out together: `samples` of each task. Number and step name it within the stage. */
export interface GroupRequest {
  run: string;
  seed: number;
  /** The stage, or the name of an evaluation. */
  stage: string;
  step: number;
  group: number;
  /** Place of the first task among all of the step: what is sampled follows from it, not from how tasks are shared out. */
  firstTask: number;
  tasks: TaskRef[];
  samples: number;
  checkpoint: CheckpointRef;
  sampling: SamplingSpec;
  reward: RewardSpec;
}

export interface AdvanceRequest {
  group: GroupRequest;
  /** Absent for the first advance, which starts all episodes of the group. */
  resume?: { part: BlobRef; call: LongCall; result: LongCallResult };
}

/** A long call's observation, or why there is none: then the episode ends as an infrastructure outcome. */
export type LongCallResult = { observation: BlobRef } | { failed: string };

export interface AdvanceResult {
  /** The episodes that were advanced, wherever they stand now. */
  part: BlobRef;
  calls: LongCall[];
  spans: Span[];
}

/** A long tool call that is due; what it asks is in the part, so that arguments do not pass through histories. */
export interface LongCall {
  /** Which episode of the group waits: index of its task, and sample. */
  task: number;
  sample: number;
  environment: string;
  tool: string;
  /** The idempotency key, unique in the run. */
  id: string;
  timeoutSeconds: number;
  heartbeatSeconds: number;
  /** 1 for `once` tools. */
  maxAttempts: number;
}

export interface CallToolResult {
  observation: BlobRef;
  spans: Span[];
}

export interface CallToolRequest {
  run: string;
  call: LongCall;
  part: BlobRef;
}

export interface VerifyRequest {
  group: GroupRequest;
  /** In the order in which they were made: a later part supersedes an earlier one's episodes. */
  parts: BlobRef[];
}

/** Successes out of the episodes of an arm that could be judged. */
export interface ArmTally {
  arm: Arm;
  successes: number;
  trials: number;
}

export interface GroupResult {
  /** The trajectories; null where the whole group failed, with `failure` saying why. */
  trajectories: BlobRef | null;
  failure?: string;
  arms: ArmTally[];
  outcomes: OutcomeCounts;
  /** Over the episodes whose reward may be trained on. */
  rewardSum: number;
  rewardCount: number;
  sampledTokens: number;
  turns: number;
  /** Tasks that fewer than half of their samples solved. */
  failedTasks: TaskRef[];
  spans: Span[];
}

export interface BatchRequest {
  run: string;
  stage: string;
  step: number;
  groups: BlobRef[];
  algorithm: Pick<AlgorithmSpec, 'scaleRewards' | 'aggregation'>;
  truncated: RewardSpec['truncated'];
}

export interface BatchResult {
  /** null when no episode of the step can teach anything. */
  batch: BlobRef | null;
  sequences: number;
  tokens: number;
  /** Groups whose rewards were all equal, or too few: left out. */
  degenerateGroups: number;
  spans: Span[];
}

export interface DemonstrationsRequest {
  run: string;
  seed: number;
  stage: string;
  round: number;
  arms: Arm[];
  count: number;
  /** For the tokenizer. */
  checkpoint: CheckpointRef;
}

export type Objective =
  | { kind: 'supervised' }
  | ({ kind: 'grpo'; temperature: number } & Pick<
      AlgorithmSpec,
      'clipRatioLow' | 'clipRatioHigh' | 'beta' | 'aggregation' | 'importanceCap'
    >);

/** One learner step: a pure function of these fields, so that a step that was lost is made again to the bit. */
export interface TrainRequest {
  run: string;
  stage: string;
  /** Of the stage, from 1. */
  stageStep: number;
  /** Of the run, from 1: names the checkpoint. */
  step: number;
  parent: CheckpointRef;
  batch: BlobRef;
  objective: Objective;
  optimizer: OptimizerSpec;
  /** Start with empty moments and a cold learning rate. */
  resetOptimizer: boolean;
  minibatch: number;
  epochs: number;
  seed: number;
  reference: CheckpointRef | null;
  /** Train an adapter, which starts beside the weights of a parent that has none. Absent: train all weights. */
  lora?: LoraSpec | undefined;
  compute?: LearnerSpec | undefined;
}

/** Means over the updates of a step. All in nats unless said otherwise. */
export interface LearnerMetrics {
  loss: number;
  /** L2 norm before clipping. */
  gradientNorm: number;
  entropy: number;
  /** K3 estimate of KL(policy ‖ reference), 0 without a reference. */
  kl: number;
  /** Part of the masked tokens whose ratio was clipped. */
  clipFraction: number;
  /**
   * Largest and mean |learner − rollout| log-prob before the first update: the gap between the engines. null where nothing
   * was sampled, as in a supervised step.
   */
  logprobGapMax: number | null;
  logprobGapMean: number | null;
  updates: number;
  /** Tokens that went through forward and backward, without padding. */
  tokens: number;
  seconds: number;
}

export interface TrainResult {
  checkpoint: CheckpointRef;
  metrics: LearnerMetrics;
  backend: string;
  spans: Span[];
}

export interface EvaluationRequest {
  run: string;
  seed: number;
  name: string;
  step: number;
  checkpoint: CheckpointRef;
  arms: Arm[];
  /** In equal parts over the arms. */
  tasks: number;
  split: Split;
  sampling: SamplingSpec;
  reward: RewardSpec;
  /** Absent: the fast tier has the last word. */
  verification?: VerificationSpec;
}

export interface EvaluationResult {
  arms: ArmTally[];
  outcomes: OutcomeCounts;
  meanReward: number;
  sampledTokens: number;
  spans: Span[];
}

export interface InitializeRequest {
  run: string;
  seed: number;
  model: ModelSource;
  /** Whose demonstrations a new model's tokenizer is learnt from. */
  arms: Arm[];
  /** What episodes may add to a prompt, in tokens: a model that has no room for it is refused. */
  maxCompletionTokens: number;
}

export interface OpenRunRequest {
  /** As a person wrote it. */
  spec: unknown;
  /** The run's name where the spec gives none. */
  workflowId: string;
  /** Tells a resumed run from another one of the same name. */
  firstExecutionRunId: string;
}

export interface RetentionRequest {
  run: string;
  retention: RetentionSpec;
  /** Never deleted. */
  pinned: CheckpointRef[];
  scores: { checkpoint: CheckpointRef; score: number }[];
}
