import { setTimeout as delay } from 'node:timers/promises';

/** How much of it is done at once. */
const AT_ONCE = 2;
/** What takes longer waits for a source that is away, and keeps nobody else waiting, milliseconds. */
export const LONGEST_HELD_MS = 2000;

/**
 * Work that comes again and again, for whoever asks: some of it at once, in the order in which it came. After each work its
 * place rests for as long as the work took, so that the event loop is there for others at least half of the time.
 */
export class WorkQueue {
  private free: number;
  private readonly waiting: (() => void)[] = [];
  private readonly pause: (ms: number) => Promise<unknown>;

  constructor({
    atOnce = AT_ONCE,
    pause = (ms: number): Promise<unknown> => delay(ms, undefined, { ref: false }),
  } = {}) {
    this.free = atOnce;
    this.pause = pause;
  }

  async take<T>(work: () => Promise<T>): Promise<T> {
    if (this.free === 0) await new Promise<void>((resolve) => this.waiting.push(resolve));
    else this.free--;
    const result = work();
    void this.letGo(result);
    return result;
  }

  private async letGo(result: Promise<unknown>): Promise<void> {
    const begun = performance.now();
    // Whoever took the turn is told how it failed.
    const ended = result.then(
      () => undefined,
      () => undefined,
    );
    await Promise.race([ended, this.pause(LONGEST_HELD_MS)]);
    await this.pause(Math.min(LONGEST_HELD_MS / 2, performance.now() - begun));
    const next = this.waiting.shift();
    if (next) next();
    else this.free++;
  }
}
