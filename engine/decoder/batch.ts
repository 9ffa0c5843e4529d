import { KvBlock, type KvRows, type KvShape } from './kv-block.ts';
import type { Sequence } from './sequence.ts';

const SMALLEST_CAPACITY = 64;

/** A block with the sequence in each of its slots. */
export interface Seats {
  block: KvBlock;
  sequences: Sequence[];
}

/**
 * The sequences that are being decoded, in blocks of few slots and like length: a small block's caches stay in the
 * processor's own cache, and a short episode does not pay for a long one. Which block a sequence is in never
 * shows in what it samples.
 */
export class Batch {
  private readonly shape: KvShape;
  private readonly slots: number;
  private readonly byCapacity = new Map<number, Seats[]>();

  constructor(shape: KvShape, slots: number) {
    this.shape = shape;
    this.slots = slots;
  }

  get size(): number {
    return this.seats().reduce((sum, { block }) => sum + block.count, 0);
  }

  get sequences(): Sequence[] {
    return this.seats().flatMap(({ sequences }) => sequences);
  }

  /** Blocks with somebody in them. */
  seats(): Seats[] {
    return [...this.byCapacity.values()].flat().filter(({ block }) => block.count > 0);
  }

  /** Seats a sequence whose first `length` cached tokens are in `rows`; its next piece is fed in the next step. */
  add(sequence: Sequence, rows: KvRows, length: number): void {
    const { block, sequences } = this.seatFor(length + sequence.size);
    const slot = block.insert(rows, length);
    sequences[slot] = sequence;
  }

  /** Seats a copy of a seated sequence, with a copy of its cache. */
  fork(sequence: Sequence, copy: Sequence): void {
    const { seats, slot } = this.seatOf(sequence);
    const to = this.seatFor(seats.block.lengths[slot]! + copy.size);
    to.sequences[to.block.adopt(seats.block, slot)] = copy;
  }

  /** Where a seated sequence is. */
  seatOf(sequence: Sequence): { seats: Seats; slot: number } {
    const seats = this.seats().find(({ sequences }) => sequences.includes(sequence))!;
    return { seats, slot: seats.sequences.indexOf(sequence) };
  }

  /** Takes a sequence out; the last one of its block moves into its slot. */
  remove({ block, sequences }: Seats, slot: number): void {
    block.remove(slot);
    const moved = sequences.pop()!;
    if (slot < sequences.length) sequences[slot] = moved;
  }

  /** Moves sequences that have outgrown their block, then fills up blocks that have become sparse. */
  settle(): void {
    for (const seats of this.seats()) {
      const { block, sequences } = seats;
      for (let slot = block.count - 1; slot >= 0; slot--) {
        if (block.capacity < block.lengths[slot]! + sequences[slot]!.size)
          this.move(seats, slot, sequences[slot]!);
      }
    }
    for (const [capacity, all] of this.byCapacity) {
      const inUse = all
        .filter(({ block }) => block.count > 0)
        .toSorted((a, b) => b.block.count - a.block.count);
      const total = inUse.reduce((sum, { block }) => sum + block.count, 0);
      for (const seats of inUse.slice(Math.ceil(total / this.slots))) {
        for (let slot = seats.block.count - 1; slot >= 0; slot--)
          this.move(seats, slot, seats.sequences[slot]!);
      }
      // One empty block stays for those who come next; the others give their memory back.
      const empty = all.filter(({ block }) => block.count === 0);
      this.byCapacity.set(capacity, [...all.filter(({ block }) => block.count > 0), ...empty.slice(0, 1)]);
    }
  }

  private move(from: Seats, slot: number, sequence: Sequence): void {
    const to = this.seatFor(from.block.lengths[slot]! + sequence.size, from);
    to.sequences[to.block.adopt(from.block, slot)] = sequence;
    this.remove(from, slot);
  }

  /** The fullest block with a free slot for a sequence of `length` tokens, other than the one that it leaves. */
  private seatFor(length: number, left?: Seats): Seats {
    let capacity = SMALLEST_CAPACITY;
    while (capacity < length) capacity *= 2;
    const all = this.byCapacity.get(capacity) ?? [];
    this.byCapacity.set(capacity, all);
    let best: Seats | undefined;
    for (const seats of all) {
      const free = seats !== left && seats.block.count < this.slots;
      if (free && (best === undefined || seats.block.count > best.block.count)) best = seats;
    }
    if (best === undefined) {
      best = { block: new KvBlock(this.shape, this.slots, capacity), sequences: [] };
      all.push(best);
    }
    return best;
  }
}
