import { setMaxListeners } from 'node:events';
import { HostDied, HostProcess } from './host-process.ts';
import type { HostOptions } from './host-process.ts';

export interface LaneSize {
  /** Processes at most. */
  processes: number;
  /** Asks that one process has at once. */
  asks: number;
}

interface Slot {
  host: HostProcess;
  asks: number;
  idle: NodeJS.Timeout | undefined;
}

/** How long a process without work is kept, milliseconds. */
const KEEP_MS = 30_000;
/** Between two signs of life of who waits for a process, milliseconds. */
const SIGN_MS = 500;

/** Processes for asks of one kind, started as they are needed and replaced when they die. */
export class Lane {
  private readonly options: HostOptions;
  private readonly size: LaneSize;
  private readonly keepMs: number;
  private slots: Slot[] = [];
  private readonly waiting: (() => void)[] = [];
  private closed = false;

  /** `keepMs`: how long the last process without work is kept; the others go sooner. */
  constructor(options: HostOptions, size: LaneSize, { keepMs = KEEP_MS } = {}) {
    this.options = options;
    this.size = size;
    this.keepMs = keepMs;
  }

  get pids(): number[] {
    return this.slots.flatMap(({ host }) => (host.alive && host.pid !== undefined ? [host.pid] : []));
  }

  /**
   * Lends a process for as long as `work` takes. Until there is one `waiting` is called now and then: how long that
   * takes is no silence of whoever is to work. `keepMs` is for a process that nobody asks anything afterwards. Throws what
   * `work` throws, HostDied, and what a start throws.
   */
  async use<T>(
    signal: AbortSignal,
    work: (host: HostProcess) => Promise<T>,
    { waiting = () => undefined, keepMs = this.keepMs }: { waiting?: () => void; keepMs?: number } = {},
  ): Promise<T> {
    const signs = setInterval(waiting, SIGN_MS);
    try {
      const slot = await this.take(signal);
      try {
        await slot.host.up();
        clearInterval(signs);
        return await work(slot.host);
      } finally {
        this.give(slot, keepMs);
      }
    } finally {
      clearInterval(signs);
    }
  }

  async close(): Promise<void> {
    this.closed = true;
    for (const wake of this.waiting.splice(0)) wake();
    const slots = this.slots;
    this.slots = [];
    await Promise.all(
      slots.map(({ host, idle }) => {
        clearTimeout(idle);
        return host.close();
      }),
    );
  }

  private async take(signal: AbortSignal): Promise<Slot> {
    for (;;) {
      signal.throwIfAborted();
      if (this.closed) throw new HostDied('crashed', 'the worker ends');
      const slot = this.free();
      if (slot) {
        slot.asks++;
        clearTimeout(slot.idle);
        return slot;
      }
      await new Promise<void>((resolve) => {
        const wake = (): void => {
          signal.removeEventListener('abort', wake);
          resolve();
        };
        this.waiting.push(wake);
        setMaxListeners(0, signal);
        signal.addEventListener('abort', wake, { once: true });
      });
    }
  }

  private free(): Slot | undefined {
    this.slots = this.slots.filter(({ host }) => host.alive);
    const [least] = this.slots
      .filter(({ asks }) => asks < this.size.asks)
      .toSorted((a, b) => a.asks - b.asks);
    // A process costs a second and 100 MB: another one is started only where the last one has work.
    if (least && (least.asks === 0 || this.slots.length >= this.size.processes)) return least;
    if (this.slots.length >= this.size.processes) return undefined;
    const slot: Slot = { host: new HostProcess(this.options), asks: 0, idle: undefined };
    this.slots.push(slot);
    return slot;
  }

  private give(slot: Slot, ofLast: number): void {
    slot.asks--;
    const keepMs = this.slots.length === 1 ? ofLast : KEEP_MS;
    if (slot.asks === 0 && keepMs < Infinity) {
      slot.idle = setTimeout(() => {
        this.slots = this.slots.filter((other) => other !== slot);
        void slot.host.close();
      }, keepMs);
      slot.idle.unref();
    }
    for (const wake of this.waiting.splice(0)) wake();
  }
}
