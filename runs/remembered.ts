import { messageOf } from '../core/errors.ts';

/** What a source said last, when, and why it says no more. */
export interface LastKnown<T> {
  value: T | null;
  /** Epoch milliseconds; null where it has never answered. */
  asOf: number | null;
  /** Why `value` is not the newest; null where it is. */
  problem: string | null;
}

/** Something that is looked at by many: read once for all who look within a time, and remembered while its source is away. */
export class Remembered<T> {
  private last: LastKnown<T> = { value: null, asOf: null, problem: null };
  private looking: Promise<LastKnown<T>> | null = null;
  private at = -Infinity;
  private readonly read: () => Promise<T>;
  private readonly freshMs: number;

  constructor(read: () => Promise<T>, freshMs: number) {
    this.read = read;
    this.freshMs = freshMs;
  }

  look(): Promise<LastKnown<T>> {
    if (this.looking === null && performance.now() - this.at < this.freshMs)
      return Promise.resolve(this.last);
    this.looking ??= this.lookAnew();
    return this.looking;
  }

  private async lookAnew(): Promise<LastKnown<T>> {
    try {
      this.last = { value: await this.read(), asOf: Date.now(), problem: null };
    } catch (error) {
      this.last = { ...this.last, problem: messageOf(error) };
    }
    this.at = performance.now();
    this.looking = null;
    return this.last;
  }
}
