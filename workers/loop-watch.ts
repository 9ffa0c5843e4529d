import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import type { Heartbeats } from '../activities/heartbeats.ts';
import { LoopMeter } from './loop-meter.ts';
import type { LoopBlock } from './loop-meter.ts';

/** What a worker process says to its supervisor. */
export type WorkerMessage =
  | { alive: SignOfLife }
  /** An attempt at an activity that the process has taken, with its task token in base64. */
  | { began: { id: number; name: string; token: string } }
  | { ended: number };

/** Said every second in which the worker's event loop turns. */
export interface SignOfLife {
  /** The activities under way. */
  running: string[];
  longestBlock: LoopBlock;
}

export interface LoopWatchOptions {
  temporalAddress: string;
  namespace: string;
  /** After so long without a turn of the event loop the process is ended. */
  endAfterSeconds?: number;
}

/** An activity's attempt under way. */
export interface Attempt {
  /** What a person calls it. */
  name: string;
  token: Uint8Array;
}

/** A loop that is kept so long will not come back: whatever takes longer belongs into a thread or a process. */
export const END_AFTER_SECONDS = 60;
const TURN_MS = 250;
const SIGN_MS = 1000;
/** Longer blocks are said, ms. */
export const SAY_MS = 1000;

/**
 * Watches the event loop of a worker process from a thread beside it (docs/adr/0026), which also gives heartbeats of the
 * activities under way, on a connection of its own: a slow worker is late, and not taken for dead. A loop that does not
 * come back ends the process, after what kept it has been written down.
 */
export class LoopWatch implements Heartbeats {
  private readonly running = new Map<number, string>();
  private readonly ids = new Map<Uint8Array, number>();
  private say: (message: WorkerMessage) => void = () => undefined;
  /** What has ended since the last look at the loop. */
  private ended: string[] = [];
  private readonly timers: NodeJS.Timeout[] = [];
  private readonly turns = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
  private readonly thread: Worker;
  private readonly ready: Promise<unknown>;
  private meter: LoopMeter | undefined;
  private last = 0;

  constructor({
    temporalAddress: address,
    namespace,
    endAfterSeconds = END_AFTER_SECONDS,
  }: LoopWatchOptions) {
    this.thread = new Worker(new URL('loop-watch-thread.mjs', import.meta.url), {
      // Without tsx, which this process was started with: the thread is plain JavaScript.
      execArgv: [],
      workerData: { turns: this.turns, address, namespace, endAfterSeconds },
    });
    this.ready = once(this.thread, 'message').then(() => this.thread.unref());
    this.ready.catch(() => undefined);
  }

  /**
   * From now on, when the workers have been made and have not begun; `say` passes messages to the supervisor. Resolves when
   * the thread is up: it cannot start while the loop is kept.
   */
  async begin(say: (message: WorkerMessage) => void = () => undefined): Promise<void> {
    await this.ready;
    this.say = say;
    // The first turn: from here on the thread counts, also when the loop is kept at once.
    Atomics.add(this.turns, 0, 1);
    const meter = new LoopMeter((block) => this.sawBlock(block));
    this.meter = meter;
    const sign = (): void =>
      say({ alive: { running: [...this.running.values()], longestBlock: meter.longest } });
    this.timers.push(
      setInterval(() => Atomics.add(this.turns, 0, 1), TURN_MS).unref(),
      setInterval(sign, SIGN_MS).unref(),
    );
  }

  /** Call what it returns when the attempt has ended. */
  began({ name, token }: Attempt): () => void {
    const id = ++this.last;
    this.running.set(id, name);
    this.ids.set(token, id);
    this.thread.postMessage({ began: id, name, token });
    this.say({ began: { id, name, token: Buffer.from(token).toString('base64') } });
    return () => {
      this.running.delete(id);
      this.ids.delete(token);
      this.ended.push(name);
      this.thread.postMessage({ ended: id });
      this.say({ ended: id });
    };
  }

  give(token: Uint8Array, details: object | undefined): void {
    const id = this.ids.get(token);
    if (id !== undefined) this.thread.postMessage({ gives: id, details: JSON.stringify(details) });
  }

  async stop(): Promise<void> {
    this.timers.forEach(clearInterval);
    this.meter?.stop();
    await this.thread.terminate();
  }

  private sawBlock({ busyMs, wallMs }: LoopBlock): void {
    const during = [...this.running.values(), ...this.ended].join(', ') || 'no activity';
    this.ended = [];
    if (busyMs < SAY_MS) return;
    console.error(
      `worker ${process.pid}: its event loop was kept for ${(wallMs / 1000).toFixed(1)} s ` +
        `(${(busyMs / 1000).toFixed(1)} s of work), while running ${during}`,
    );
  }
}
