/** How many may be in at a time, and how long one must have rested before it has to go for another, milliseconds. */
export interface RoomOptions<T> {
  most: number;
  restMs: number;
  /** Makes one leave; what it does is not waited for. */
  evict: (item: T) => void;
}

/**
 * A bounded number of things that can be had again, such as pages. Where there is no room, whoever comes waits until one
 * leaves, or the one that has rested longest has rested long enough to be asked to: what was just let in, or is between
 * two uses, is left alone.
 */
export class Room<T> {
  private readonly options: RoomOptions<T>;
  /** When each began to rest, the longest first; those in use are not in it. */
  private readonly resting = new Map<T, number>();
  private readonly inside = new Set<T>();
  private coming = 0;
  private readonly queue: (() => void)[] = [];
  private timer: NodeJS.Timeout | undefined;

  constructor(options: RoomOptions<T>) {
    this.options = options;
  }

  /** Lets in what `make` makes, when there is room; it is in use. Throws what `make` throws. */
  async enter(make: () => Promise<T>): Promise<T> {
    if (this.queue.length > 0 || !this.hasRoom()) {
      await new Promise<void>((resolve) => {
        this.queue.push(resolve);
        this.admit();
      });
    } else this.coming++;
    try {
      const item = await make();
      this.inside.add(item);
      return item;
    } finally {
      this.coming--;
      this.admit();
    }
  }

  /** Throws an Error where it has left. */
  use(item: T): void {
    if (!this.inside.has(item)) throw new Error('it had to go for another');
    this.resting.delete(item);
  }

  rest(item: T): void {
    if (!this.inside.has(item)) return;
    this.resting.delete(item);
    this.resting.set(item, Date.now());
    this.admit();
  }

  leave(item: T): void {
    this.resting.delete(item);
    if (this.inside.delete(item)) this.admit();
  }

  private hasRoom(): boolean {
    return this.inside.size + this.coming < this.options.most;
  }

  /** Lets in who waits, as far as there is room or can be made. */
  private admit(): void {
    clearTimeout(this.timer);
    while (this.queue.length > 0) {
      if (!this.hasRoom()) {
        const [longest] = this.resting;
        if (longest === undefined) return;
        const [item, since] = longest;
        const left = since + this.options.restMs - Date.now();
        if (left > 0) {
          this.timer = setTimeout(() => this.admit(), left);
          return;
        }
        this.resting.delete(item);
        this.inside.delete(item);
        this.options.evict(item);
      }
      this.coming++;
      this.queue.shift()!();
    }
  }
}
