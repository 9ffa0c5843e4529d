import type { ChildProcess } from 'node:child_process';
import { closeSync, mkdirSync, openSync } from 'node:fs';
import { dirname } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { GradusError } from '../core/errors.ts';
import type { LostAttempt } from './fail-lost-attempts.ts';
import { END_AFTER_SECONDS } from './loop-watch.ts';
import type { SignOfLife, WorkerMessage } from './loop-watch.ts';
import type { LoopBlock } from './loop-meter.ts';

/** How a worker process is started, and how it says that it is ready. */
export interface ProcessKind {
  /** What a person calls it, as in "the worker for rollout". */
  title: string;
  /** Where its output goes is given: a file's descriptor, or this process's own terminal. */
  spawn(output: number | 'inherit'): ChildProcess;
  /**
   * Calls `ready` once, with what the process says of itself; or `failed` with what kept it from that, before it ends,
   * where it can say so.
   */
  whenReady(
    child: ChildProcess,
    ready: (descriptions: string[]) => void,
    failed: (why: string) => void,
  ): void;
  /** Calls `heard` with every message from when it is ready on; absent where the process sends none. */
  onMessage?(child: ChildProcess, heard: (message: WorkerMessage) => void): void;
}

export interface SupervisionOptions {
  /** Where the output goes; this process's own terminal otherwise. */
  logFile?: string;
  onEvent?: (text: string) => void;
  /** What becomes of the attempts that a process had under way when it ended, for whichever reason. */
  onLost?: (attempts: readonly LostAttempt[], why: string) => Promise<void>;
  /**
   * Seconds without a sign of life after which a process is killed and replaced. It is more than what a process gives
   * itself, so that what kept its event loop is written down; one that was stopped for less goes on.
   */
  hungAfterSeconds?: number;
  /** Seconds within which a process says that it is ready; after them it is killed, and counts as one that ended before. */
  readyWithinSeconds?: number;
}

const FIRST_BACKOFF_MS = 250;
const LONGEST_BACKOFF_MS = 10_000;
const HUNG_AFTER_SECONDS = END_AFTER_SECONDS + 15;
/** Seconds of silence that are worth a line. */
const SILENT_SECONDS = 10;
/** A busy machine starts a worker in less than a minute, and the first one of an installation makes what others keep. */
const READY_WITHIN_SECONDS = 600;
/** Seconds of a start that are worth a line. */
const STARTING_SECONDS = 60;

/** A process that is started again when it dies or hangs, after a pause that grows while it keeps dying. */
export class SupervisedProcess {
  descriptions: string[] = [];
  /** Of the event loops of all processes that there have been, as their signs of life said. */
  longestBlock: LoopBlock = { busyMs: 0, wallMs: 0 };
  private readonly kind: ProcessKind;
  private readonly options: SupervisionOptions;
  private child: ChildProcess | undefined;
  private starting: Promise<void>;
  private reporting: Promise<void> = Promise.resolve();
  private stopping = false;
  private backoff = FIRST_BACKOFF_MS;

  constructor(kind: ProcessKind, options: SupervisionOptions) {
    this.kind = kind;
    this.options = options;
    this.starting = this.start();
    this.starting.catch(() => undefined);
  }

  get pid(): number | undefined {
    return this.child?.exitCode === null && this.child.signalCode === null ? this.child.pid : undefined;
  }

  /** Resolves when it is ready; rejects with GradusError('infra', 'worker-start') when it ended before that. */
  up(): Promise<void> {
    return this.starting;
  }

  async stop(): Promise<void> {
    this.stopping = true;
    const { child } = this;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
    child.kill('SIGTERM');
    const force = setTimeout(() => child.kill('SIGKILL'), 12_000);
    await ended;
    clearTimeout(force);
    await this.reporting;
  }

  private async start(): Promise<void> {
    const child = this.spawn();
    this.child = child;
    const { logFile, readyWithinSeconds = READY_WITHIN_SECONDS, onEvent } = this.options;
    let seconds = 0;
    const timer = setInterval(() => {
      seconds++;
      if (seconds === STARTING_SECONDS)
        onEvent?.(`${this.kind.title} is not ready after ${seconds} s; it has ${readyWithinSeconds} s`);
      if (seconds >= readyWithinSeconds) child.kill('SIGKILL');
    }, 1000).unref();
    await new Promise<void>((resolve, reject) => {
      let text = '';
      const failed = (how: string): void =>
        reject(
          new GradusError(
            'infra',
            'worker-start',
            (seconds >= readyWithinSeconds
              ? `${this.kind.title} was not ready within ${readyWithinSeconds} s and was killed`
              : `${this.kind.title} ended before it was ready (${how})${text}`) +
              (logFile === undefined ? '' : `${text === '' ? ': see' : '\nIts log is'} ${logFile}`),
            { retryable: true },
          ),
        );
      this.kind.whenReady(
        child,
        (descriptions) => {
          // What it said last may be read after it has ended.
          if (child.exitCode !== null || child.signalCode !== null) return;
          this.descriptions = descriptions;
          this.backoff = FIRST_BACKOFF_MS;
          child.once('exit', (code, signal) => this.died(signal ?? `exit ${code}`));
          this.watch(child);
          resolve();
        },
        (why) => (text = `: ${why}`),
      );
      child.once('exit', (code, signal) => failed(signal ?? `exit ${code}`));
      child.once('error', (error) => failed(error.message));
    }).finally(() => clearInterval(timer));
  }

  /** Silence is counted in seconds in which this process ran: a laptop that slept has killed nobody. */
  private watch(child: ChildProcess): void {
    if (!this.kind.onMessage) return;
    const { hungAfterSeconds = HUNG_AFTER_SECONDS, onEvent } = this.options;
    let silent = 0;
    let last: SignOfLife | undefined;
    const underWay = new Map<number, LostAttempt>();
    const doing = (): string => last?.running.join(', ') || 'no activity';
    const alive = (sign: SignOfLife): void => {
      if (silent >= SILENT_SECONDS) onEvent?.(`${this.kind.title} is back after ${silent} s of silence`);
      silent = 0;
      last = sign;
      if (sign.longestBlock.busyMs > this.longestBlock.busyMs) this.longestBlock = sign.longestBlock;
    };
    this.kind.onMessage(child, (message) => {
      if ('alive' in message) alive(message.alive);
      if ('began' in message) underWay.set(message.began.id, message.began);
      if ('ended' in message) underWay.delete(message.ended);
    });
    this.reporting = this.reportLost(child, underWay);
    const timer = setInterval(() => {
      silent++;
      if (silent === SILENT_SECONDS) {
        onEvent?.(`${this.kind.title} is silent for ${silent} s; when last heard of it ran ${doing()}`);
      }
      if (silent < hungAfterSeconds) return;
      onEvent?.(
        `${this.kind.title} hangs: no sign of life for ${silent} s, last while it ran ${doing()}; killing it`,
      );
      child.kill('SIGKILL');
      clearInterval(timer);
    }, 1000).unref();
    child.once('exit', () => clearInterval(timer));
  }

  /** When the process has ended, and all is heard that it had said. */
  private async reportLost(child: ChildProcess, underWay: ReadonlyMap<number, LostAttempt>): Promise<void> {
    const how = await new Promise<string>((resolve) => {
      child.once('exit', (code, signal) => resolve(signal ?? `exit ${code}`));
    });
    if (child.connected) await new Promise<void>((resolve) => child.once('disconnect', () => resolve()));
    if (underWay.size > 0)
      await this.options.onLost?.([...underWay.values()], `${this.kind.title} died (${how})`);
  }

  private died(how: string): void {
    if (this.stopping) return;
    this.options.onEvent?.(`${this.kind.title} died (${how}); starting it again`);
    this.starting = this.startAgain();
    this.starting.catch(() => undefined);
  }

  /** Until it works: the servers may be away for as long as they like. */
  private async startAgain(): Promise<void> {
    while (!this.stopping) {
      await delay(this.backoff);
      this.backoff = Math.min(this.backoff * 2, LONGEST_BACKOFF_MS);
      if (this.stopping) return;
      try {
        await this.start();
        return;
      } catch (error) {
        this.options.onEvent?.((error as Error).message);
      }
    }
  }

  private spawn(): ChildProcess {
    const { logFile } = this.options;
    if (logFile === undefined) return this.kind.spawn('inherit');
    mkdirSync(dirname(logFile), { recursive: true });
    const log = openSync(logFile, 'a');
    try {
      return this.kind.spawn(log);
    } finally {
      closeSync(log);
    }
  }
}
