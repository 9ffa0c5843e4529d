import type { Incident } from '../episode/incidents.ts';
import type { BlobRef } from '../refs.ts';
import type { RewardSpec } from '../schema/reward.ts';
import type { ProposerArm, SelfPlaySpec } from '../schema/stages/self-play.ts';
import type { MadePlace } from '../training/proposals.ts';
import type { SelfPlayFacts } from '../training/step-facts.ts';
import type { MadeTasks } from '../training/task-source.ts';
import type { Span } from './span.ts';
import type { GroupResult } from './verification.ts';

/** Looks at the proposals of a step, and keeps the tasks that they make. */
export interface KeepProposalsRequest {
  run: string;
  stage: string;
  /** Of the stage, from 1. */
  step: number;
  /** Trajectories of the episodes that were asked for proposals. */
  groups: BlobRef[];
  arms: ProposerArm[];
  /** Tasks of earlier steps; null where there are none. */
  source: BlobRef | null;
  /** Of each arm. */
  mostTasks: number;
}

export interface KeptProposals extends MadeTasks {
  /** Those of the step. */
  made: MadePlace[];
  /** What each proposal came to. */
  proposals: BlobRef;
  spans: Span[];
  incidents: Incident[];
}

/** Rewards the proposals of a step by how the samples of its solver fared. */
export interface RewardProposalsRequest extends Pick<
  KeepProposalsRequest,
  'run' | 'stage' | 'step' | 'groups'
> {
  proposals: BlobRef;
  /** Trajectories of the solver. */
  solved: BlobRef[];
  reward: RewardSpec;
  by: SelfPlaySpec;
}

export interface RewardedProposals {
  /** As they are now rewarded, in the order of the request. */
  groups: GroupResult[];
  /** What the solver learns from, in that order, where the majority of its samples labels it; absent where it is as it was. */
  solved?: GroupResult[];
  facts: SelfPlayFacts;
  spans: Span[];
}
