import type { BlobRef, CheckpointRef } from '../refs.ts';
import type { RewardSpec } from '../schema/reward.ts';
import type { WaitingTask } from '../training/tasks-again.ts';
import type { GroupRequest } from './rollout.ts';

/** Says with which weights a stage goes on after so many of its steps. */
export interface KeepVersionRequest {
  run: string;
  stage: string;
  after: number;
  checkpoint: CheckpointRef;
}

/** A group that a step of an asynchronous stage takes. */
export interface TakenGroup extends Pick<GroupRequest, 'step' | 'group' | 'firstTask' | 'tasks' | 'retries'> {
  /** Those of its tasks that had waited to be drawn again. */
  again: WaitingTask[];
  /** Steps of the stage that were done when it was begun: the weights after them have sampled it. */
  begunAfter: number;
}

/** The groups that a step takes, in the order in which it learns from them. */
export interface TakenGroups {
  groups: TakenGroup[];
  /** The stage has rolled back behind the weights that sample: nothing is learnt from them. */
  givenUp?: true;
}

export interface TakeRequest {
  run: string;
  stage: string;
  /** Of the stage, from 1. */
  step: number;
  /** The run whose steps are made again. */
  follow?: string;
  /** null: those that were taken before, if any. */
  wanted: TakenGroups | null;
}

/** A task of a group that may be trained again, with all of its samples. */
export interface ReplayedTask {
  /** The trajectories of the group, and the place of the task there. */
  ref: BlobRef;
  task: number;
}

/** Copies groups that a step would replay. */
export interface ReplayRequest {
  run: string;
  stage: string;
  /** Of the stage, from 1. */
  step: number;
  groups: ReplayedTask[];
}

export interface KeepReplayedRequest extends Omit<ReplayRequest, 'groups'> {
  /** The copies. */
  groups: BlobRef[];
  /** Log-probs of their tokens under the policy that is trained, as `ScoreResult` has them; absent where nobody looks. */
  scores?: BlobRef;
  /** Effective sample size of its importance weights that a group must have, part of its sampled tokens. */
  minEffectiveSamples: number;
  /** Bounds of the probability of its successes that a group must have; absent: none. */
  successes?: { from: number; to: number };
  reward: RewardSpec;
}

/** A task whose samples had advantages that move the policy. */
export interface MovingTask {
  /** Places of the group in the request, and of the task in it. */
  group: number;
  task: number;
  /** Mean |advantage| of its sampled tokens. */
  advantage: number;
  /** How many these are; absent in older versions. */
  tokens?: number;
}
