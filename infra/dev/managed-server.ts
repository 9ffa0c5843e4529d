import { setTimeout as delay } from 'node:timers/promises';
import { messageOf } from '../../core/errors.ts';
import { startServer } from './server-process.ts';
import type { ServerCommand, ServerExit, ServerProcess } from './server-process.ts';

/** A server that can be ended and brought back at the same address, with the same data. */
export interface ServerHandle {
  /** Of the server itself; another one after a restart. */
  readonly pid: number;
  /** Ends it in order; it stays down. */
  stop(): Promise<void>;
  /** SIGKILL: for tests of recovery. It stays down until `restart`. */
  kill(): void;
  /** Brings it back up at its address, after ending it if it runs. Resolves when it serves. */
  restart(): Promise<void>;
}

export interface SuperviseOptions {
  /** Bring the server back when it ends without having been asked to. */
  supervise?: boolean | undefined;
  /** Told of unexpected ends and returns, in a sentence. */
  onEvent?: ((text: string) => void) | undefined;
}

const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 30_000;
/** A server that has served for so long is not one that keeps ending. */
const STABLE_MS = 60_000;

export class ManagedServer implements ServerHandle {
  #process: ServerProcess;
  /** The one change of state under way, if any; the next waits for it. */
  #change: Promise<void> = Promise.resolve();
  /** Starts that failed, or whose server did not live long, since the last one that did. */
  #failures = 0;
  #servesSince = performance.now();
  /** Aborted when nobody wants it to be brought back any more. */
  #unwanted = new AbortController();
  readonly #command: ServerCommand;
  readonly #options: SuperviseOptions;

  private constructor(command: ServerCommand, process: ServerProcess, options: SuperviseOptions) {
    this.#command = command;
    this.#process = process;
    this.#options = options;
    this.#watch(process);
  }

  static async start(command: ServerCommand, options: SuperviseOptions = {}): Promise<ManagedServer> {
    return new ManagedServer(command, await startServer(command), options);
  }

  get pid(): number {
    return this.#process.pid;
  }

  stop(): Promise<void> {
    this.#unwanted.abort();
    return this.#then(() => this.#process.stop());
  }

  kill(): void {
    this.#unwanted.abort();
    this.#process.kill();
  }

  restart(): Promise<void> {
    this.#unwanted.abort(); // what ends now was asked to
    return this.#then(async () => {
      await this.#process.stop();
      await this.#startAgain();
    });
  }

  #then(work: () => Promise<void>): Promise<void> {
    this.#change = this.#change.catch(() => undefined).then(work); // each caller sees its own failure only
    return this.#change;
  }

  async #startAgain(): Promise<void> {
    this.#unwanted = new AbortController();
    this.#process = await startServer(this.#command);
    this.#servesSince = performance.now();
    this.#watch(this.#process);
  }

  #watch(process: ServerProcess): void {
    const { signal } = this.#unwanted;
    void process.exited.then((exit) => {
      if (signal.aborted) return undefined;
      const event = this.#options.onEvent ?? (() => undefined);
      event(`${this.#command.title} ended unexpectedly (${describeExit(exit)})`);
      if (this.#options.supervise !== true) return undefined;
      return this.#then(() => this.#bringBack(event, signal)).catch((error: unknown) => event(String(error)));
    });
  }

  /** Until it serves or nobody wants it any more: what keeps it from starting, a full disk say, may pass. */
  async #bringBack(event: (text: string) => void, unwanted: AbortSignal): Promise<void> {
    if (performance.now() - this.#servesSince > STABLE_MS) this.#failures = 0;
    while (!unwanted.aborted) {
      const pause =
        this.#failures === 0 ? 0 : Math.min(FIRST_PAUSE_MS * 2 ** this.#failures, LONGEST_PAUSE_MS);
      this.#failures++;
      // Whoever asks it to stop ends the pause; the condition above sees it.
      await delay(pause, undefined, { signal: unwanted }).catch(() => undefined);
      if (unwanted.aborted) return;
      try {
        const process = await startServer(this.#command);
        if (unwanted.aborted) return await process.stop();
        this.#process = process;
        this.#servesSince = performance.now();
        this.#watch(process);
        event(`${this.#command.title} is back`);
        return;
      } catch (error) {
        event(
          `${this.#command.title} cannot be started; it is tried again, at most ${LONGEST_PAUSE_MS / 1000} s apart. ${messageOf(error)}`,
        );
      }
    }
  }
}

function describeExit(exit: ServerExit): string {
  return exit.signal ?? `exit code ${exit.code}`;
}
