import type { Incident } from '../episode/incidents.ts';
import type { OutcomeCounts } from '../episode/outcome.ts';
import type { CheckpointRef, Split } from '../refs.ts';
import type { AgentSpec } from '../schema/agent.ts';
import type { BeamsSpec } from '../schema/beams.ts';
import type { EvaluateSpec, ExpectedVerdicts } from '../schema/evaluate.ts';
import type { OtherPolicySpec, ServedPolicySpec } from '../schema/policy.ts';
import type { RewardSpec } from '../schema/reward.ts';
import type { SamplingSpec } from '../schema/sampling.ts';
import type { Arm } from '../schema/tasks.ts';
import type { VerificationSpec } from '../schema/verification.ts';
import type { Proportion } from '../statistics/intervals.ts';
import type { ArmHowSolved } from '../training/how-solved.ts';
import type { HeldAnswer } from './rollout.ts';
import type { OpenRunRequest } from './run.ts';
import type { Span } from './span.ts';
import type { ArmTally } from './verification.ts';

export interface EvaluationRequest {
  run: string;
  seed: number;
  name: string;
  step: number;
  checkpoint: CheckpointRef;
  arms: Arm[];
  /** In equal parts over the arms. */
  tasks: number;
  /** Of each task; absent: one. */
  samples?: number;
  /** As in a group. */
  policy?: OtherPolicySpec;
  agent?: AgentSpec;
  split: Split;
  sampling: SamplingSpec;
  /** As in a group. */
  beams?: BeamsSpec;
  reward: RewardSpec;
  /** Absent: the fast tier has the last word. */
  verification?: VerificationSpec;
  /** Says how many samples of a task differ. */
  distinct?: true;
  /** Groups that are stored already are taken as they are, and not rolled out again. Absent: all are rolled out. */
  adopts?: true;
}

export interface EvaluationResult {
  arms: ArmTally[];
  outcomes: OutcomeCounts;
  meanReward: number;
  sampledTokens: number;
  /** How tasks were gone about, by arm; absent where nothing could be rolled out. */
  conduct?: ArmHowSolved[];
  /** Samples beyond the first of their task, and those of them that differ from all before; absent where nobody asked. */
  distinct?: Proportion;
  spans: Span[];
  incidents?: Incident[];
}

export interface OpenEvaluateRequest extends OpenRunRequest {
  /** What servers said of the model that they hold, where an earlier request wanted to know it. */
  held?: HeldAnswer;
}

/** An evaluation that may begin. */
export interface OpenedEvaluate {
  /** null where no checkpoint was named in a dry run. */
  spec: EvaluateSpec | null;
  /** Of a dry run without a checkpoint: tasks of all levels together, and samples of each. */
  counts?: Pick<EvaluateSpec['evaluation'], 'count' | 'samples'>;
  /** What its verdicts may cost at most, where a tier judges. */
  expected?: ExpectedVerdicts;
  /** Only the input was to be checked: nothing was claimed. */
  dryRun: boolean;
  /** These servers are to be asked what they hold, and then all of this again; absent: they need not. */
  ask?: ServedPolicySpec;
}

/** Keeps what was measured, with every sample of every task. */
export interface KeepEvaluationRequest {
  spec: EvaluateSpec;
  /** What was sampled from. */
  checkpoint: CheckpointRef;
  measured: Omit<EvaluationResult, 'spans' | 'incidents'>;
}
