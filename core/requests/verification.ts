import type { Incident } from '../episode/incidents.ts';
import type { OutcomeCounts } from '../episode/outcome.ts';
import type { BlobRef, CheckpointRef, TaskRef } from '../refs.ts';
import type { ServedRewardModel } from '../reward/reward-model.ts';
import type { AskedJudge } from '../reward/self-judge.ts';
import type { RewardSpec } from '../schema/reward.ts';
import type { Arm } from '../schema/tasks.ts';
import type { ArmHowSolved } from '../training/how-solved.ts';
import type { BehaviourCounts } from '../training/step-facts.ts';
import type { GroupRequest, OpenGroup } from './rollout.ts';
import type { Span } from './span.ts';

export interface VerifyRequest {
  group: OpenGroup & Pick<GroupRequest, 'reward'>;
  /** All episodes as they stood when the first of them waited. */
  part: BlobRef;
  /** Those that have waited, as they ended. */
  followed: BlobRef[];
  /** What a reward model, or the policy itself, has said of all of them; absent where none judges. */
  judged?: BlobRef;
}

/** Has a reward model judge a group's episodes, all as they ended. */
export interface JudgeRequest extends Pick<VerifyRequest, 'part' | 'followed'> {
  group: OpenGroup;
  rewardModel: ServedRewardModel;
}

/** Has the policy judge a group's episodes, all as they ended. */
export interface SelfJudgeRequest extends Pick<VerifyRequest, 'part' | 'followed'> {
  group: OpenGroup;
  judge: AskedJudge;
}

export interface JudgeResult {
  judged: BlobRef;
  spans: Span[];
}

/** Successes out of the episodes of an arm of which it can be said. */
export interface ArmTally {
  arm: Arm;
  successes: number;
  trials: number;
  /** Trials without success because a call made its tool or its session fail; absent where there is none. */
  toolFailures?: number;
}

/** A task and how many of its samples solved it. */
export interface TriedTask extends TaskRef {
  successes: number;
  trials: number;
}

/** Sampled tokens of a group by weights, of this SHA-256, that are not those that it began with. */
export interface OthersTokens {
  weights: string;
  tokens: number;
}

export interface GroupResult {
  /** The trajectories; null where the whole group failed, with `failure` saying why. */
  trajectories: BlobRef | null;
  failure?: string;
  /** Of tasks that were drawn for the first time: those drawn again because samples had failed them say too little of an arm. */
  arms: ArmTally[];
  outcomes: OutcomeCounts;
  /** Over the episodes whose reward may be trained on. */
  rewardSum: number;
  rewardCount: number;
  sampledTokens: number;
  /** Those of them that newer weights have sampled; absent where there are none. */
  sampledBy?: OthersTokens[];
  /** Sampled ones that episodes have of others, which they branched off; absent where there are none. */
  inheritedTokens?: number;
  /** Sum of their log-probs when sampled, nats. */
  sampledLogprob: number;
  turns: number;
  behaviour: BehaviourCounts;
  /** How tasks that are not trained on were gone about; absent of others. */
  conduct?: ArmHowSolved[];
  /** Tasks that not all of their samples solved; absent of others than training's, and from before they were told. */
  tried?: TriedTask[];
  /** What `failedTasksOf` derives from `tried`; only results from before that was told have it. */
  failedTasks?: TaskRef[];
  spans: Span[];
  /** What users' code did wrong, if anything. */
  incidents?: Incident[];
}

/** Looks for failed episodes that solved another task than theirs. */
export interface RelabelRequest {
  run: string;
  stage: string;
  step: number;
  groups: BlobRef[];
  reward: RewardSpec;
  /** For the tokenizer. */
  checkpoint: CheckpointRef;
}

export interface RelabelResult {
  /** Null where there was none. */
  trajectories: BlobRef | null;
  spans: Span[];
  incidents: Incident[];
}
