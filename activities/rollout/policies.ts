import type { ModelConfig } from '../../core/model/config.ts';
import type { CheckpointRef } from '../../core/refs.ts';
import type { RolloutDtype } from '../../core/schema/policy.ts';
import type { Dialect } from '../../engine/dialect/contract.ts';
import type { Policy } from '../../engine/policy.ts';
import type { Tokenizer } from '../../engine/tokenizer/tokenizer.ts';
import type { ToolFacts } from '../../environments/host/facts.ts';

/** What a dialect must know of an environment. */
export interface Speaking {
  tools: readonly Pick<ToolFacts, 'described'>[];
}

/** A policy that samples with the weights of one checkpoint for as long as it is leased. */
export interface PolicyLease {
  policy: Policy;
  tokenizer: Tokenizer;
  config: ModelConfig;
  /** What the checkpoint speaks with an environment's tools. Throws as `openDialect` does. */
  dialectFor(environment: Speaking): Dialect;
  release(): void;
}

export interface LeaseOptions {
  /** The run that samples. */
  run: string;
  signal: AbortSignal;
  /** What a decoder of this process rounds the weights to; float32 where it is absent. */
  dtype?: RolloutDtype | undefined;
}

/** Where policies are: in decoders of this process, on servers, or in what servers have sampled before. */
export interface PolicyProvider {
  /** Waits while the weights cannot be had, because others are in use. */
  lease(checkpoint: CheckpointRef, options: LeaseOptions): Promise<PolicyLease>;
  close(): Promise<void>;
}
