import type { ModelConfig } from '../../core/model/config.ts';
import type { Draws } from './draws.ts';
import type { KvBlock, KvRows } from './kv-block.ts';
import type { DecoderWeights } from './packed-weights.ts';

/** One sequence of those that are fed a piece of several tokens together; its row of `Draws` is its place among them. */
export interface PieceRow {
  block: KvBlock;
  slot: number;
  tokens: readonly number[];
}

/** Sequences that are fed a piece together, at most. */
export const LANES = 8;

/** What a decoder's thread is given; `exclusive` as in `BackendOptions`. */
export interface LoadedModel {
  config: ModelConfig;
  weights: DecoderWeights;
  exclusive: boolean;
}

export interface BackendOptions {
  /** That a step computes with. */
  threads: number;
  /** Nobody else reads the memory of the weights, so that their bytes may be given up when they are kept in another form. */
  exclusive?: boolean;
}

/**
 * What the scheduler asks of the engine that runs the model. Each call is a pure function of the weights and of
 * the tokens: `step` gives a slot the same bits whatever the block's capacity, its other slots and their number.
 */
export interface DecoderBackend {
  /** Feeds one sequence whole, from position 0. Gives the logits [V] of its last token and its cache. */
  prefill(tokens: readonly number[]): Promise<{ logits: Float32Array; rows: KvRows }>;
  /**
   * Feeds `block.tokens[i]` at position `block.lengths[i]` to each slot i < `block.count`, writes its key and value
   * into the block, and draws the tokens that `block.draws` asks for. The caller advances the lengths.
   */
  step(block: KvBlock): Promise<void>;
  /**
   * Feeds up to `LANES` sequences a piece each, from its slot's length on, and draws what `draws` asks for. The caller
   * advances the lengths. A lane gets the same bits in any company. Gives the logits [LANES, V] of the pieces' last tokens,
   * in memory that the next feed may write to.
   */
  feed(lanes: readonly PieceRow[], draws: Draws): Promise<Float32Array>;
  /** Logits [count, V] of the last step, in memory that the next step may write to. */
  logits(block: KvBlock): Float32Array;
  dispose(): Promise<void>;
}
