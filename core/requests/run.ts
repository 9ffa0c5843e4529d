import type { CheckpointRef } from '../refs.ts';
import type { StoredChange } from '../run-change.ts';
import type { ModelSource } from '../schema/model.ts';
import type { RetentionSpec } from '../schema/retention.ts';
import type { JudgeSpec, RewardSpec } from '../schema/reward.ts';
import type { Arm } from '../schema/tasks.ts';
import type { StepAnswer, StepFacts } from '../training/step-facts.ts';

export interface InitializeRequest {
  run: string;
  seed: number;
  model: ModelSource;
  /** Whose demonstrations a new model's tokenizer is learnt from. */
  arms: Arm[];
  /** What episodes may add to a prompt, in tokens: a model that has no room for it is refused. */
  maxCompletionTokens: number;
  /** The model's weights are on a server: only how it speaks is read and copied. */
  held?: true;
  /** Checkpoints of other runs that stages name, as they name them: a model with other tokens is refused. */
  checkpoints?: Record<string, CheckpointRef>;
  /** Those of them that sample in the model's place: they must speak as it does. */
  speaking?: string[];
  /** Other runs whose stored episodes stages learn from: a new model with other tokens is refused. */
  episodesOf?: string[];
  /** What the policy is to judge itself by: a model that has no room for it is refused. */
  judge?: JudgeSpec;
}

export interface OpenRunRequest {
  /** As a person wrote it. */
  spec: unknown;
  /** The run's name where the spec gives none. */
  workflowId: string;
  /** Tells a resumed run from another one of the same name. */
  firstExecutionRunId: string;
}

/** Stored groups of an evaluation, by the numbers from `from` to before `to`. */
export interface AdoptRequest {
  run: string;
  stage: string;
  step: number;
  from: number;
  to: number;
  reward: RewardSpec;
}

export interface StepFactsRequest {
  run: string;
  facts: StepFacts;
}

export interface ChangeRequest {
  run: string;
  made: StoredChange;
}

export interface StepAnswerRequest {
  run: string;
  answer: StepAnswer;
}

export interface RetentionRequest {
  run: string;
  retention: RetentionSpec;
  /** Never deleted. */
  pinned: CheckpointRef[];
  scores: { checkpoint: CheckpointRef; score: number }[];
}
