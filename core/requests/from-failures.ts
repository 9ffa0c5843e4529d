import type { Incident } from '../episode/incidents.ts';
import type { BlobRef, CheckpointRef } from '../refs.ts';
import type { RewardSpec } from '../schema/reward.ts';
import type { SamplingSpec } from '../schema/sampling.ts';
import type { Arm } from '../schema/tasks.ts';
import type { VariedTasks } from '../training/from-failures.ts';
import type { Span } from './span.ts';

/** Varies what an earlier stage failed. */
export interface VaryFailuresRequest {
  run: string;
  seed: number;
  stage: string;
  /** Whose failed tasks they are, of these arms. */
  from: string;
  arms: Arm[];
  /** Of each of them. */
  variations: number;
  mostFailures: number;
  /** For the tokenizer, and to say whether it has a critic. */
  checkpoint: CheckpointRef;
  reward: RewardSpec;
  /** What an episode must have room for. */
  limits: Pick<SamplingSpec, 'maxTurns' | 'maxCompletionTokens'>;
  temperature: number;
}

export interface VariedFailures {
  /** What was said of each variation. */
  checked: BlobRef;
  /** Episodes of the reference solutions of those that are tasks; null where there is none. */
  references: BlobRef | null;
  critic: boolean;
  spans: Span[];
  incidents: Incident[];
}

/** Keeps those variations as tasks that are within the bounds of value. */
export interface KeepVariationsRequest {
  run: string;
  stage: string;
  checked: BlobRef;
  /** What a critic says of the episodes; all three absent: nobody filters. */
  references?: BlobRef;
  scores?: BlobRef;
  values?: { from: number; to: number };
}

export interface KeptVariations extends VariedTasks {
  spans: Span[];
}
