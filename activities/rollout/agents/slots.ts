/** Places for agents of one worker: whoever finds none free waits, in the order of asking. */
export class Slots {
  private taken = 0;
  private readonly waiting: (() => void)[] = [];

  /** `most` is how many may be at work for this one to begin. Throws the signal's reason. */
  async with<T>(most: number, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    while (this.taken >= most) await this.freed(signal);
    signal.throwIfAborted();
    this.taken++;
    try {
      return await work();
    } finally {
      this.taken--;
      for (const wake of this.waiting.splice(0)) wake();
    }
  }

  private freed(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const off = (): void => reject(signal.reason as Error);
      signal.addEventListener('abort', off, { once: true });
      this.waiting.push(() => {
        signal.removeEventListener('abort', off);
        resolve();
      });
      if (signal.aborted) off();
    });
  }
}
