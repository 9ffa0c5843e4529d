import type { CheckpointRef } from './refs.ts';
import type { FinalEvaluationSpec } from '../spec/sections/evaluation.ts';
import type { LearnerSpec } from '../spec/sections/learner.ts';
import type { LoraSpec } from '../spec/sections/lora.ts';
import type { ModelSource } from '../spec/sections/model.ts';
import type { RetentionSpec } from '../spec/sections/retention.ts';
import type { RewardSpec } from '../spec/sections/reward.ts';
import type { SamplingSpec } from '../spec/sections/sampling.ts';
import type { StageSpec } from '../spec/sections/stages/stages.ts';
import type { VerificationSpec } from '../spec/sections/verification.ts';

/**
 * A curriculum as the workflows see it: parsed, defaults filled in, every name checked. Each section's type follows from
 * its schema in `spec/sections/`, where each field is described.
 */
export interface CurriculumSpec {
  run: string;
  seed: number;
  model: ModelSource;
  /** Of other runs, by what stages call them: RUN, or RUN@STEP. Absent: they name none. */
  checkpoints?: Record<string, CheckpointRef>;
  /** Absent: all weights are trained. */
  lora?: LoraSpec;
  learner?: LearnerSpec;
  /** Versions of the sources of tasks, by environment, as the run began with them. Absent: none has any. */
  taskVersions?: Record<string, string>;
  sampling: SamplingSpec;
  reward: RewardSpec;
  /** Absent: verdicts of fast verifiers are all there is. */
  verification?: VerificationSpec;
  stages: StageSpec[];
  evaluation: FinalEvaluationSpec;
  retention: RetentionSpec;
}

export type { CollectSpec } from '../spec/sections/collect.ts';
export type { DialectSpec } from '../spec/sections/dialect.ts';
export type { ModelSpec } from '../spec/sections/model.ts';
export type { OptimizerSpec } from '../spec/sections/optimizer.ts';
export type { RewardComponentSpec } from '../spec/sections/reward.ts';
export type { AlgorithmSpec } from './algorithms/index.ts';
export type { CollapseAction, PlateauAction, RlStageSpec } from '../spec/sections/stages/rl.ts';
export type { SupervisedStageSpec } from '../spec/sections/stages/supervised.ts';
export type { Arm } from '../spec/sections/tasks.ts';
export type { RungSpec } from '../spec/sections/verification.ts';
export type {
  FinalEvaluationSpec,
  LearnerSpec,
  LoraSpec,
  ModelSource,
  RetentionSpec,
  RewardSpec,
  SamplingSpec,
  StageSpec,
  VerificationSpec,
};
