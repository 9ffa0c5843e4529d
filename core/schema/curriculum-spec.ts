import type { CheckpointRef } from '../refs.ts';
import type { AgentSpec } from './agent.ts';
import type { FinalEvaluationSpec } from './evaluation.ts';
import type { LearnerSpec } from './learner.ts';
import type { LoraSpec } from './lora.ts';
import type { ModelSource } from './model.ts';
import type { OtherPolicySpec } from './policy.ts';
import type { RetentionSpec } from './retention.ts';
import type { RewardSpec } from './reward.ts';
import type { SamplingSpec } from './sampling.ts';
import type { StageSpec } from './stages/stages.ts';
import type { VerificationSpec } from './verification.ts';

/**
 * A curriculum as the workflows see it: parsed, defaults filled in, every name checked. Each section's type follows from
 * its schema in `core/schema/`, where each field is described.
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
  /** Absent: the decoder of rollout workers samples. */
  policy?: OtherPolicySpec;
  /** Absent: the policy acts with the tools of environments. */
  agent?: AgentSpec;
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
