import type { ModelConfig } from '../../core/model/config.ts';
import { Draws } from './draws.ts';

/** The cache of one sequence outside any block: [2 · layers, K, length, D], keys and values of a layer in turn. */
export interface KvRows {
  length: number;
  data: Float32Array;
}

/** L, K and D of the caches. */
export interface KvShape {
  layers: number;
  heads: number;
  headSize: number;
}

export function kvShape(config: ModelConfig): KvShape {
  return { layers: config.layers, heads: config.keyValueHeads, headSize: config.headSize };
}

/**
 * The caches of up to `slots` sequences that are decoded together, each up to `capacity` tokens long.
 * Slots in use are the first `count`, so that their caches are one tensor [count, K, capacity, D] per part.
 */
export class KvBlock {
  readonly slots: number;
  readonly capacity: number;
  readonly shape: KvShape;
  /** Keys and values of each layer in turn, each [slots, K, capacity, D]. */
  readonly parts: readonly Float32Array[];
  /** Tokens that lie in each slot's cache. */
  readonly lengths: Int32Array;
  /** The token that each slot is fed next. */
  readonly tokens: Int32Array;
  /** What is drawn from each slot's logits. */
  readonly draws: Draws;
  count = 0;

  constructor(shape: KvShape, slots: number, capacity: number) {
    this.shape = shape;
    this.slots = slots;
    this.capacity = capacity;
    const size = slots * shape.heads * capacity * shape.headSize;
    this.parts = Array.from({ length: 2 * shape.layers }, () => new Float32Array(size));
    this.lengths = new Int32Array(slots);
    this.tokens = new Int32Array(slots);
    this.draws = new Draws(slots);
  }

  /** Takes a slot and puts the first `length` tokens of `rows` into it. */
  insert(rows: KvRows, length: number): number {
    const slot = this.count++;
    const { heads, headSize } = this.shape;
    let source = 0;
    for (const part of this.parts) {
      for (let head = 0; head < heads; head++, source += rows.length * headSize) {
        part.set(rows.data.subarray(source, source + length * headSize), this.offset(slot, head));
      }
    }
    this.lengths[slot] = length;
    return slot;
  }

  /** Takes a slot and puts there what another block's slot holds, which stays as it is. */
  adopt(other: KvBlock, slot: number): number {
    const length = other.lengths[slot]!;
    const target = this.count++;
    for (const [i, part] of this.parts.entries()) {
      for (let head = 0; head < this.shape.heads; head++) {
        const start = other.offset(slot, head);
        const rows = other.parts[i]!.subarray(start, start + length * this.shape.headSize);
        part.set(rows, this.offset(target, head));
      }
    }
    this.lengths[target] = length;
    return target;
  }

  /** A slot's own memory: keys and values of each layer in turn, each [K, capacity, D]. */
  views(slot: number): Float32Array[] {
    const size = this.offset(1, 0);
    return this.parts.map((part) => part.subarray(slot * size, (slot + 1) * size));
  }

  /** A copy of a slot's cache. */
  extract(slot: number): KvRows {
    const { layers, heads, headSize } = this.shape;
    const length = this.lengths[slot]!;
    const data = new Float32Array(2 * layers * heads * length * headSize);
    let target = 0;
    for (const part of this.parts) {
      for (let head = 0; head < heads; head++, target += length * headSize) {
        const start = this.offset(slot, head);
        data.set(part.subarray(start, start + length * headSize), target);
      }
    }
    return { length, data };
  }

  /** Frees a slot; the last slot in use moves into it. */
  remove(slot: number): void {
    const last = --this.count;
    if (slot === last) return;
    const { heads, headSize } = this.shape;
    const length = this.lengths[last]!;
    for (const part of this.parts) {
      for (let head = 0; head < heads; head++) {
        const start = this.offset(last, head);
        part.copyWithin(this.offset(slot, head), start, start + length * headSize);
      }
    }
    this.lengths[slot] = length;
    this.tokens[slot] = this.tokens[last]!;
  }

  /** Where the row of a slot's first token begins. */
  private offset(slot: number, head: number): number {
    return (slot * this.shape.heads + head) * this.capacity * this.shape.headSize;
  }
}
