import { readFileSync } from 'node:fs';

/** A time in which the event loop did not turn. */
export interface LoopBlock {
  /** Processor time of the loop's own thread in it, ms: what work took, and not what a busy machine withheld. */
  busyMs: number;
  /** Wall time, ms. */
  wallMs: number;
}

/** Reading the processor time takes 50 µs: a thousandth of it. */
const TICK_MS = 50;

/** Milliseconds of processor time that the calling thread has had so far; of the whole process where Linux is not. */
function threadBusyMs(): number {
  try {
    return Number(readFileSync('/proc/thread-self/schedstat', 'latin1').split(' ')[0]) / 1e6;
  } catch {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1000;
  }
}

/**
 * Sees how long this thread's event loop is kept at a time: a timer that is late has waited for what ran. A block counts
 * by processor time, so that a process that the machine stopped or starved is not taken for one that worked on.
 */
export class LoopMeter {
  longest: LoopBlock = { busyMs: 0, wallMs: 0 };
  private readonly timer: NodeJS.Timeout;
  private readonly onBlock: (block: LoopBlock) => void;
  private at = performance.now();
  private busy = threadBusyMs();

  /** `onBlock` is told of every block that is seen, however short. */
  constructor(onBlock: (block: LoopBlock) => void = () => undefined) {
    this.onBlock = onBlock;
    this.timer = setInterval(() => this.look(), TICK_MS).unref();
  }

  stop(): void {
    this.look();
    clearInterval(this.timer);
  }

  private look(): void {
    const [at, busy] = [performance.now(), threadBusyMs()];
    const wallMs = at - this.at - TICK_MS;
    const busyMs = Math.min(wallMs, busy - this.busy);
    this.at = at;
    this.busy = busy;
    if (busyMs <= 0) return;
    if (busyMs > this.longest.busyMs) this.longest = { busyMs, wallMs };
    this.onBlock({ busyMs, wallMs });
  }
}
