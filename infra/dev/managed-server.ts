import { GradusError } from '../../core/errors.ts';
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

const MOST_RESTARTS = 5;
const RESTART_WINDOW_MS = 60_000;

export class ManagedServer implements ServerHandle {
  #process: ServerProcess;
  /** The one change of state under way, if any; the next waits for it. */
  #change: Promise<void> = Promise.resolve();
  #wanted = true;
  #restarts: number[] = [];
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
    this.#wanted = false;
    return this.#then(() => this.#process.stop());
  }

  kill(): void {
    this.#wanted = false;
    this.#process.kill();
  }

  restart(): Promise<void> {
    this.#wanted = false; // what ends now was asked to
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
    this.#process = await startServer(this.#command);
    this.#wanted = true;
    this.#watch(this.#process);
  }

  #watch(process: ServerProcess): void {
    void process.exited.then((exit) => {
      if (!this.#wanted || process !== this.#process) return undefined;
      const event = this.#options.onEvent ?? (() => undefined);
      event(`${this.#command.title} ended unexpectedly (${describeExit(exit)})`);
      if (this.#options.supervise !== true) return undefined;
      return this.#then(() => this.#bringBack(event)).catch((error: unknown) => event(String(error)));
    });
  }

  async #bringBack(event: (text: string) => void): Promise<void> {
    if (!this.#wanted) return;
    const now = Date.now();
    this.#restarts = [...this.#restarts.filter((time) => now - time < RESTART_WINDOW_MS), now];
    if (this.#restarts.length > MOST_RESTARTS) {
      throw new GradusError(
        'infra',
        'server-unstable',
        `${this.#command.title} ended ${this.#restarts.length} times within a minute and is left down. ` +
          `Its log, ${this.#command.logFile}, says why.`,
      );
    }
    await this.#startAgain();
    event(`${this.#command.title} is back`);
  }
}

function describeExit(exit: ServerExit): string {
  return exit.signal ?? `exit code ${exit.code}`;
}
