import type { KvBlock, KvRows } from './kv-block.ts';

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
  /** Logits [count, V] of the last step, in memory that the next step may write to. */
  logits(block: KvBlock): Float32Array;
  dispose(): Promise<void>;
}
