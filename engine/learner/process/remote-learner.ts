import { fork, type ChildProcess } from 'node:child_process';
import { GradusError } from '../../../core/errors.ts';
import type { Learner, LearnerScores } from '../contract.ts';
import type { LocalLearnerOptions } from '../local-learner.ts';
import { OWN_LOADER, ownModule } from '../../own-module.ts';
import { fromSentError } from './messages.ts';
import type { FromLearner, ScoringRequest, Sent, SentState, StepRequest, ToLearner } from './messages.ts';
import { closeFile, openUnnamedFile, readValue, writeValue } from './shared-file.ts';

export interface LearnerOptions extends LocalLearnerOptions {
  /** A process that has not loaded its backend by then is killed. Seconds; default 600. */
  readyWithinSeconds?: number;
}

export interface RemoteLearner extends Learner {
  /** Kills the process; a step under way fails with GradusError('learner', 'closed'). */
  close(): Promise<void>;
  /** The learner process, while there is one. */
  readonly pid: number | undefined;
}

/**
 * A learner in a process of its own, so that synchronous kernels do not stop this event loop and a crash of
 * libtensorflow does not take this process along. A dead process fails its step with the retryable
 * GradusError('learner', 'process-died'); the next step starts another. One that is not ready in time fails with the
 * retryable 'slow-start'. Other errors are those of the contract, and 'backend-missing' at the start.
 */
export async function createLearner(options: LearnerOptions = {}): Promise<RemoteLearner> {
  let connection: Connection | undefined = await Connection.open(options);
  const { backend } = connection;
  let closed = false;
  let queue: Promise<unknown> = Promise.resolve();

  /** Work of a process that is there, and ends with it where nobody wants it any more. */
  const inTurn = <T>(signal: AbortSignal | undefined, work: (connection: Connection) => Promise<T>) => {
    const done = queue.then(async () => {
      signal?.throwIfAborted();
      if (closed) throw closedError();
      if (!connection?.alive) connection = await Connection.open(options);
      if (closed) {
        await connection.close();
        throw closedError();
      }
      const { kill } = connection;
      signal?.addEventListener('abort', kill, { once: true });
      try {
        return await work(connection);
      } catch (error) {
        signal?.throwIfAborted();
        throw error;
      } finally {
        signal?.removeEventListener('abort', kill);
      }
    });
    queue = done.catch(() => undefined);
    return done;
  };
  return {
    backend,
    get pid() {
      return connection?.alive ? connection.pid : undefined;
    },
    step: (parent, batch, settings, others, onProgress, signal) =>
      inTurn(signal, (process) => process.step(parent, batch, settings, others, onProgress)),
    score: (model, batch, what, compute, signal) =>
      inTurn(signal, (process) => process.score(model, batch, what, compute)),
    close: async () => {
      closed = true;
      await connection?.close();
    },
  };
}

const slowStartError = (seconds: number) =>
  new GradusError(
    'learner',
    'slow-start',
    `The learner process was not ready within ${seconds} s, and was killed. It starts again with the next attempt; if that takes as long, check the disk that the packages lie on and how much memory is free.`,
    { retryable: true },
  );

const closedError = () => new GradusError('learner', 'closed', 'the learner was closed: start another one');

interface Waiting {
  resolve(message: Exclude<FromLearner, { kind: 'progress' }>): void;
  reject(error: Error): void;
  onProgress: ((done: number, total: number) => void) | undefined;
}

/** What the process holds, and under which number. */
interface Held {
  value: WeakRef<object>;
  id: number;
}

/** One learner process and what it is known to hold. */
class Connection {
  backend = '';
  private readonly child: ChildProcess;
  /** For a step and its answer in turn. */
  private readonly file = openUnnamedFile();
  /** What is being written to the file or read from it: it must not be closed meanwhile. */
  private moving: Promise<unknown> = Promise.resolve();
  private ended: GradusError | undefined;
  private readonly exited: Promise<void>;
  private waiting: Waiting | undefined;
  /** Why it is killed; absent: it was not, or its step was called off. */
  private killedFor: GradusError | undefined;
  /** The end of what it wrote to stderr: libtensorflow's last words. */
  private words = '';
  private lastNumber = 0;
  private held: Held[] = [];

  private constructor() {
    this.child = fork(ownModule('process', import.meta.url), [String(process.pid)], {
      execArgv: [...OWN_LOADER],
      serialization: 'advanced',
      stdio: ['ignore', 'ignore', 'pipe', 'ipc', this.file],
    });
    this.child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.words = (this.words + text).slice(-2000);
    });
    this.child.on('message', (message: FromLearner) => this.receive(message));
    this.exited = new Promise((resolve) => {
      const end = (how: string) => {
        if (this.ended) return;
        this.ended = this.killedFor ?? this.deathError(how);
        void this.moving.catch(() => undefined).finally(() => closeFile(this.file));
        this.waiting?.reject(this.ended);
        this.waiting = undefined;
        resolve();
      };
      this.child.on('error', (error) => end(error.message));
      this.child.on('exit', (code, signal) => end(signal ?? `exit code ${code}`));
    });
  }

  static async open({ readyWithinSeconds = 600, ...options }: LearnerOptions): Promise<Connection> {
    const connection = new Connection();
    const late = setTimeout(
      () => connection.killFor(slowStartError(readyWithinSeconds)),
      1000 * readyWithinSeconds,
    );
    try {
      const answer = await connection.ask({ kind: 'start', options });
      if (answer.kind === 'ready') connection.backend = answer.backend;
      return connection;
    } catch (error) {
      await connection.close();
      throw error;
    } finally {
      clearTimeout(late);
    }
  }

  get alive(): boolean {
    return this.ended === undefined;
  }

  get pid(): number | undefined {
    return this.child.pid;
  }

  async step(...args: Parameters<Learner['step']>): ReturnType<Learner['step']> {
    const [parent, batch, settings, { reference, teachers = [] } = {}, onProgress] = args;
    const next = ++this.lastNumber;
    const held = this.takeHeld();
    const request: StepRequest = {
      keep: held.map(({ id }) => id),
      parent: this.sent(parent, held),
      batch,
      settings,
      reference: reference && this.sent(reference, held),
      teachers: teachers.map((teacher) => this.sent(teacher, held)),
      next,
    };
    const answer = await this.ask(
      { kind: 'step', request: await this.moved(writeValue(this.file, request)) },
      onProgress,
    );
    if (answer.kind !== 'done') throw new Error(`the learner process answered "${answer.kind}" to a step`);
    const { metrics } = answer;
    const sent = (await this.moved(readValue(this.file, answer.state))) as SentState;
    const state = { ...sent, weights: sent.weights ?? parent.weights };
    // The parent of the next step is this one's result; the process has forgotten the parent of this one.
    this.held = [
      ...held.filter(({ id }) => id !== request.parent.id),
      { value: new WeakRef(state), id: next },
    ];
    return { state, metrics };
  }

  async score(...args: Parameters<Learner['score']>): ReturnType<Learner['score']> {
    const [model, batch, what, compute] = args;
    const held = this.takeHeld();
    const { config, weights, adapter, critic } = model;
    const request: ScoringRequest = {
      keep: held.map(({ id }) => id),
      model: held.some(({ value }) => value.deref() === model)
        ? this.sent(model, held)
        : {
            config,
            weights: this.sent(weights, held),
            ...(adapter && { adapter }),
            ...(critic && { critic }),
          },
      batch,
      what,
      compute,
    };
    const answer = await this.ask({
      kind: 'score',
      request: await this.moved(writeValue(this.file, request)),
    });
    if (answer.kind !== 'scored')
      throw new Error(`the learner process answered "${answer.kind}" to a scoring`);
    const scores = (await this.moved(readValue(this.file, answer.scores))) as LearnerScores;
    this.held = held;
    return scores;
  }

  /** Kernels cannot be interrupted, so a step that nobody wants any more ends with its process. */
  readonly kill = (): void => void this.child.kill('SIGKILL');

  async close(): Promise<void> {
    this.killFor(closedError());
    await this.exited;
  }

  private killFor(why: GradusError): void {
    this.killedFor ??= why;
    this.kill();
  }

  private async moved<T>(transfer: Promise<T>): Promise<T> {
    this.moving = transfer;
    return transfer;
  }

  /**
   * What the process holds of things that are still there. Work that fails anywhere on its way leaves the process without
   * what it was to be sent, or with more: until it ends well nothing counts as held.
   */
  private takeHeld(): Held[] {
    const held = this.held.filter(({ value }) => value.deref() !== undefined);
    this.held = [];
    return held;
  }

  private sent<T extends object>(value: T, held: Held[]): Sent<T> {
    const known = held.find((one) => one.value.deref() === value);
    if (known) return { id: known.id };
    const id = ++this.lastNumber;
    held.push({ value: new WeakRef(value), id });
    return { id, value };
  }

  private ask(message: ToLearner, onProgress?: Waiting['onProgress']) {
    return new Promise<Exclude<FromLearner, { kind: 'progress' }>>((resolve, reject) => {
      if (this.ended) {
        reject(this.ended);
        return;
      }
      this.waiting = { resolve, reject, onProgress };
      this.child.send(message, (error) => {
        // What the death of the process means for the step is said when it has exited.
        if (error && this.alive) this.child.kill('SIGKILL');
      });
    });
  }

  private receive(message: FromLearner): void {
    if (message.kind === 'progress') {
      this.waiting?.onProgress?.(message.done, message.total);
      return;
    }
    const waiting = this.waiting;
    this.waiting = undefined;
    if (message.kind === 'failed') waiting?.reject(fromSentError(message.error));
    else waiting?.resolve(message);
  }

  private deathError(how: string): GradusError {
    const words = this.words.trim();
    return new GradusError(
      'learner',
      'process-died',
      `The learner process ended (${how}) before its answer. It starts again with the next step; if that dies too, ` +
        `check whether there is too little memory.${words === '' ? '' : `\nIts last words: ${words}`}`,
      { retryable: true },
    );
  }
}
