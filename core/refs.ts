import type { Json } from './json/json.ts';

/** An immutable object in the store. `sha256` is lower-case hex of its bytes; readers check it. */
export interface BlobRef {
  key: string;
  sha256: string;
  bytes: number;
}

/**
 * A committed checkpoint. `manifest` names every file of it, and is written last, so a checkpoint that has a
 * ref is whole. `weights` is the version of the policy: the
 * SHA-256 of `model.safetensors`, or what store/training/manifest.ts makes of its shards or of an adapter.
 */
export interface CheckpointRef {
  manifest: BlobRef;
  weights: string;
  step: number;
}

export const SPLITS = ['train', 'heldout', 'test'] as const;
export type Split = (typeof SPLITS)[number];

/** The coordinates of a generated task: an environment makes the same task from the same coordinates. */
export interface TaskRef {
  environment: string;
  split: Split;
  level: number;
  index: number;
}

/** A task that is not generated, or not by its coordinates alone (self-play). All of it is absent of one that is. */
export interface MadeTaskRef extends TaskRef {
  /** Of a task that a policy has made, or that was made of another one: the task source that has it; `index` is its place there among those of its level. */
  source?: BlobRef;
  /** Of a task that asks for a proposal: places of earlier proposals in the source, which the prompt shows; it may be none. */
  references?: number[];
  /** What the source has there, once a worker has read it: proposals as they were accepted. */
  made?: Json[];
}
