import { Worker } from 'node:worker_threads';
import { GradusError } from '../../../core/errors.ts';
import { inTurn } from '../in-turn.ts';

/** What goes into a function and comes out of it. */
export type Data = number | string | boolean | readonly Data[];

/** How a call ended. `no-data`: with something else than data, or with more of it than any answer has. */
export type CallEnd =
  { kind: 'value'; value: Data } | { kind: 'no-data' } | { kind: 'error'; message: string };

/** A program with what its calls came to, in their order; or no program, or one without the function. */
export type FunctionRan =
  { kind: 'compile-error'; message: string } | { kind: 'ran'; results: readonly CallEnd[] };

export interface FunctionRun {
  /** A program of ECMAScript whose value is the function, or which declares it by its name. */
  source: string;
  /** An identifier. */
  name: string;
  /** Arguments of each call. */
  calls: readonly (readonly Data[])[];
}

/** What takes milliseconds is stuck by then: no machine is as busy as that. */
const STUCK_SECONDS = 10;
/** A thread reads and compiles QuickJS before anything runs, which says nothing of a program. */
const START_SECONDS = 120;
const HEAP_MEGABYTES = 64;
const STACK_MEGABYTES = 16;
/** Instances of WebAssembly reserve addresses until the collector finds them: a thread is a new one after so many. */
const MOST_RUNS = 500;

/** What a thread says, or why it was ended. `ready`: it has begun, and takes programs. */
type Said = FunctionRan | { kind: 'ready' } | Gone;
type Gone = { kind: 'failed'; message: string } | { kind: 'ended'; message: string };

const idle: FunctionThread[] = [];

/**
 * Calls the function of a program that nobody has read: in QuickJS in WebAssembly, in an instance of its own, milliseconds.
 * It sees its arguments alone, and the same program and calls give the same. Calls that use up what steps there are end in
 * an error, and so do all calls of a program that is stuck in one step, or takes the thread's memory.
 * Throws GradusError('infra', 'sandbox-failed', retryable) where the sandbox is at fault, and the signal's reason.
 */
export function runFunction(run: FunctionRun, signal: AbortSignal): Promise<FunctionRan> {
  return inTurn(signal, async () => {
    const thread = idle.pop() ?? new FunctionThread();
    const said = await thread.ask(run);
    if (thread.isFresh) idle.push(thread);
    else await thread.end();
    if (said.kind === 'ended') {
      return { kind: 'ran', results: run.calls.map(() => ({ kind: 'error', message: said.message })) };
    }
    if (said.kind === 'failed') {
      const message = `QuickJS did not run: ${said.message}`;
      throw new GradusError('infra', 'sandbox-failed', message, { retryable: true });
    }
    return said;
  });
}

class FunctionThread {
  readonly #worker = new Worker(new URL('function-thread.mjs', import.meta.url), {
    env: {},
    execArgv: [],
    resourceLimits: { maxOldGenerationSizeMb: HEAP_MEGABYTES, stackSizeMb: STACK_MEGABYTES },
  });
  #runs = 0;
  #isWhole = true;
  #isReady = false;
  #hear: (said: Said) => void = () => undefined;

  constructor() {
    this.#worker.on('message', (said: Said) => this.#hear(said));
    this.#worker.on('error', (error: NodeJS.ErrnoException) =>
      error.code === 'ERR_WORKER_OUT_OF_MEMORY'
        ? this.#gone('ended', 'took too much memory')
        : this.#gone('failed', error.message),
    );
    this.#worker.on('exit', () => this.#gone('failed', 'its thread has ended'));
  }

  /** Whether it may run another program. */
  get isFresh(): boolean {
    return this.#isWhole && this.#runs < MOST_RUNS;
  }

  async ask(run: FunctionRun): Promise<FunctionRan | Gone> {
    this.#runs++;
    // It keeps the process while it works, and not while it waits.
    this.#worker.ref();
    const slow = { kind: 'failed', message: 'its thread did not begin' } as const;
    const begun = this.#isReady ? { kind: 'ready' as const } : await this.#said(START_SECONDS, slow);
    this.#isReady = begun.kind === 'ready';
    const stuck = { kind: 'ended', message: 'took too long' } as const;
    const said = this.#isReady ? await this.#said(STUCK_SECONDS, stuck, run) : begun;
    this.#worker.unref();
    if (said.kind === 'ready') throw new Error('a thread begins once');
    if (said.kind === 'failed') this.#isWhole = false;
    return said;
  }

  /** What it says next, to a program where it is given one; `late` where it says nothing for so long. */
  async #said(seconds: number, late: Gone, run?: FunctionRun): Promise<Said> {
    let clock: NodeJS.Timeout | undefined;
    const said = await new Promise<Said>((resolve) => {
      this.#hear = resolve;
      if (!this.#isWhole) this.#gone('failed', 'its thread has ended');
      clock = setTimeout(() => this.#gone(late.kind, late.message), seconds * 1000);
      if (run) this.#worker.postMessage(run);
    });
    clearTimeout(clock);
    return said;
  }

  async end(): Promise<void> {
    await this.#worker.terminate();
  }

  #gone(kind: Gone['kind'], message: string): void {
    this.#isWhole = false;
    this.#hear({ kind, message });
  }
}
