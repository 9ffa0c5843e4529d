import type { Rank, Tensor3D, Tensor4D } from '@tensorflow/tfjs';
import type { Tf } from '../tensorflow/backend.ts';

/** Positions that a block of queries has at least: below, smaller products and more ops cost more than they save. */
const LEAST = 32;

/** B rows of T positions, H = G · K query heads over K key-value heads, of D numbers each. */
interface Heads {
  rows: number;
  heads: number;
  keyHeads: number;
  length: number;
  headSize: number;
}

/**
 * Rows cut into blocks of t queries, each of which looks at the keys up to its own end e, for of what comes later it
 * sees nothing: two blocks leave out a quarter of the work, four three eighths. The G query heads that share a key
 * head are laid one after the other, so that keys and values are never repeated.
 */
export interface CausalBlocks {
  /** [B, H, T, D] as [B · K, G · t, D] for each block. */
  queries(whole: Tensor4D): Tensor3D[];
  /** [B, K, T, D] as [B · K, e, D] for each block. */
  keys(whole: Tensor4D): Tensor3D[];
  /** [B, 1, T, T] as [B, 1, t, e] for each block. */
  masks(whole: Tensor4D): Tensor4D[];
  /** The blocks that `queries` gives, put together. */
  joined(parts: readonly Tensor3D[]): Tensor4D;
  /** What all blocks that `keys` gives have to say of a position, added up. */
  added(parts: readonly Tensor3D[]): Tensor4D;
}

export function causalBlocks(tf: Tf, { rows, heads, keyHeads, length, headSize }: Heads): CausalBlocks {
  const count = [4, 2].find((blocks) => length % blocks === 0 && length / blocks >= LEAST) ?? 1;
  const size = length / count;
  const ends = Array.from({ length: count }, (_, block) => (block + 1) * size);
  const part = (whole: Tensor4D, from: number, to: number): Tensor4D =>
    from === 0 && to === length
      ? whole
      : tf.slice(whole, [0, 0, from, 0], [rows, whole.shape[1], to - from, headSize]);
  const apart = (parts: readonly Tensor3D[]): Tensor4D[] =>
    parts.map((one) => tf.reshape<Rank.R4>(one, [rows, -1, one.shape[1], headSize]));
  return {
    queries: (whole) =>
      ends.map((end) =>
        tf.reshape(part(whole, end - size, end), [rows * keyHeads, (heads / keyHeads) * size, headSize]),
      ),
    keys: (whole) => ends.map((end) => tf.reshape(part(whole, 0, end), [rows * keyHeads, end, headSize])),
    masks: (whole) => ends.map((end) => tf.slice(whole, [0, 0, end - size, 0], [rows, 1, size, end])),
    joined: (parts) =>
      tf.concat(
        parts.map((one) => tf.reshape<Rank.R4>(one, [rows, heads, size, headSize])),
        2,
      ),
    added: (parts) =>
      apart(parts).reduce((sum, next) => {
        const [before, own] = tf.split(next, [sum.shape[2], size], 2) as [Tensor4D, Tensor4D];
        return tf.concat([tf.add(sum, before), own], 2);
      }),
  };
}
