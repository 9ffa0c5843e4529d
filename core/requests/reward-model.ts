import type { BlobRef, CheckpointRef } from '../refs.ts';
import type { RewardModelQuality } from '../reward/reward-model.ts';
import type { LearnerSpec } from '../schema/learner.ts';
import type { RewardSpec } from '../schema/reward.ts';
import type { Arm } from '../schema/tasks.ts';
import type { StoredRequest, UpdatePlan } from './batch.ts';
import type { Span } from './span.ts';

/** The stored episodes that a reward stage learns from, and is measured on. */
export interface RewardExamplesRequest {
  run: string;
  seed: number;
  stage: string;
  from: StoredRequest['from'];
  arms: Arm[];
  maxEpisodes: number;
  /** Part of the tasks. */
  heldOut: number;
  reward: RewardSpec;
  /** A component whose verifier judges steps; absent: it is not asked for. */
  stepsOf?: string;
  /** Whose tokens they must be of. */
  checkpoint: CheckpointRef;
}

export interface RewardExamplesResult {
  examples: BlobRef;
  /** Episodes with a label. */
  train: number;
  heldOut: number;
  spans: Span[];
}

/** What a model of a reward stage is shown in an epoch. */
export interface RewardBatchRequest {
  run: string;
  seed: number;
  stage: string;
  /** Of the stage, from 1. */
  step: number;
  /** Number of the model, from 0: it draws its tasks. */
  model: number;
  /** How many there are: one alone learns from all tasks. Absent of runs from before it was said: it draws. */
  models?: number;
  examples: BlobRef;
  labels: 'outcomes' | 'pairs' | 'steps';
  pairsPerTask: number;
  updates: UpdatePlan;
}

/** Measures the models of a reward stage on what they were not shown. */
export interface RewardQualityRequest {
  run: string;
  stage: string;
  examples: BlobRef;
  models: CheckpointRef[];
  compute?: LearnerSpec | undefined;
}

export interface RewardQualityResult {
  quality: RewardModelQuality;
  spans: Span[];
}
