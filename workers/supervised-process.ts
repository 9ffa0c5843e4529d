import type { ChildProcess } from 'node:child_process';
import { closeSync, mkdirSync, openSync } from 'node:fs';
import { dirname } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { GradusError } from '../core/errors.ts';

/** How a worker process is started, and how it says that it is ready. */
export interface ProcessKind {
  /** What a person calls it, as in "the worker for rollout". */
  title: string;
  /** Where its output goes is given: a file's descriptor, or this process's own terminal. */
  spawn(output: number | 'inherit'): ChildProcess;
  /** Calls `ready` once, with what the process says of itself. */
  whenReady(child: ChildProcess, ready: (descriptions: string[]) => void): void;
}

export interface SupervisionOptions {
  /** Where the output goes; this process's own terminal otherwise. */
  logFile?: string;
  onEvent?: (text: string) => void;
}

const FIRST_BACKOFF_MS = 250;
const LONGEST_BACKOFF_MS = 10_000;

/** A process that is started again when it dies, after a pause that grows while it keeps dying. */
export class SupervisedProcess {
  descriptions: string[] = [];
  private readonly kind: ProcessKind;
  private readonly options: SupervisionOptions;
  private child: ChildProcess | undefined;
  private starting: Promise<void>;
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
  }

  private async start(): Promise<void> {
    const child = this.spawn();
    this.child = child;
    await new Promise<void>((resolve, reject) => {
      const failed = (how: string): void =>
        reject(
          new GradusError(
            'infra',
            'worker-start',
            `${this.kind.title} ended before it was ready (${how})` +
              (this.options.logFile === undefined ? '' : `: see ${this.options.logFile}`),
            { retryable: true },
          ),
        );
      this.kind.whenReady(child, (descriptions) => {
        this.descriptions = descriptions;
        this.backoff = FIRST_BACKOFF_MS;
        child.once('exit', (code, signal) => this.died(signal ?? `exit ${code}`));
        resolve();
      });
      child.once('exit', (code, signal) => failed(signal ?? `exit ${code}`));
      child.once('error', (error) => failed(error.message));
    });
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
