import type { AlgorithmSpec } from '../algorithms/index.ts';
import type { Plan } from '../algorithms/method.ts';
import type { MovingMeans } from '../algorithms/moving-means.ts';
import type { OfSamples } from '../algorithms/objective.ts';
import type { Score } from '../algorithms/scores.ts';
import type { BlobRef, CheckpointRef } from '../refs.ts';
import type { LearnerSpec } from '../schema/learner.ts';
import type { RewardSpec } from '../schema/reward.ts';
import type { Arm } from '../schema/tasks.ts';
import type { BatchFacts } from '../training/step-facts.ts';
import type { MovingTask } from './collect.ts';
import type { Span } from './span.ts';
import type { GroupResult } from './verification.ts';

/** A step of tasks whose episodes are stored already. */
export interface StoredRequest {
  run: string;
  seed: number;
  stage: string;
  step: number;
  from: { run: string; stage: string; steps?: { from: number; to?: number | undefined } | undefined };
  /** What the stage's tasks are; others are left out. */
  arms: Arm[];
  /** Tasks of the step. */
  count: number;
  reward: RewardSpec;
  /** Whose tokens they must be of. */
  checkpoint: CheckpointRef;
}

/** What was taken, counted over all of it: a step may take tasks of thousands of groups. */
export interface StoredResult extends Omit<GroupResult, 'trajectories' | 'failure' | 'incidents'> {
  /** Kept as groups of the step. */
  groups: BlobRef[];
}

/** How a batch is cut into the updates of a learner step. */
export interface UpdatePlan {
  /** Sequences per optimizer update at most; a step's updates have the same number, give or take one. */
  minibatch: number;
  /** Passes over the batch. */
  epochs: number;
  /** Orders the sequences: the step's own, a function of its place in the run. */
  seed: number;
}

/** Scores of every sampled token of the episodes that credit may be given for. */
export interface ScoreRequest {
  run: string;
  stage: string;
  step: number;
  groups: BlobRef[];
  reward: RewardSpec;
  scores: Score[];
  /** What log-probs are of. */
  from: OfSamples;
  /** Whose critic, and whose log-probs as `policy`. */
  policy: CheckpointRef;
  reference: CheckpointRef | null;
  compute?: LearnerSpec | undefined;
}

export interface ScoreResult {
  scores: BlobRef;
  spans: Span[];
}

export interface BatchRequest {
  run: string;
  stage: string;
  step: number;
  groups: BlobRef[];
  /** One greedy sample of each task, where credit asks for it. */
  greedy?: BlobRef[];
  /** What `ScoreResult` has of the same groups, where credit asks for it. */
  scores?: BlobRef;
  algorithm: AlgorithmSpec;
  plan: Pick<Plan, 'movesAll' | 'refillBy'>;
  /** Part of the groups that is learnt from, those whose rewards deviate most; absent: all. */
  keepGroups?: number;
  reward: RewardSpec;
  /** The last so many of the groups are replayed; absent: none. */
  replayed?: number;
  /** Tell which tasks moved the policy. */
  tellMoving?: true;
  /** SHA-256 of the weights that the step starts from: what others have sampled is late. */
  policy: string;
  /** What the stage's earlier steps have left, where its method leaves something. */
  movingMeans?: MovingMeans;
  /** How many learner steps these are ahead of others, by the SHA-256 of those; absent: nobody asks. */
  stepsAhead?: Record<string, number>;
  updates: UpdatePlan;
}

export interface BatchResult extends BatchFacts {
  /** null when no episode of the step can teach anything. */
  batch: BlobRef | null;
  /** Those of groups that are not replayed; absent where nobody asked. */
  moving?: MovingTask[];
  /** What the step leaves to the next one, where its method leaves something. */
  movingMeans?: MovingMeans;
  spans: Span[];
}
