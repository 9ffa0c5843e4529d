import { fork } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { closeSync, mkdirSync, openSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { GradusError } from '../core/errors.ts';
import type { Role } from '../core/names.ts';
import { settingsToEnv } from './settings.ts';
import type { WorkerSettings } from './settings.ts';

/** Which roles share a process: the decoder and the learner keep to themselves. */
export const PROCESSES: Role[][] = [['orchestrator', 'verifier', 'tool'], ['rollout'], ['learner']];

export interface WorkersOptions {
  processes?: Role[][];
  /** Where the workers' output goes; their own terminal otherwise. */
  logFile?: string;
  onEvent?: (text: string) => void;
  env?: Record<string, string>;
}

export interface Workers {
  /** What each worker said of itself when it was ready. */
  descriptions: string[];
  /** The process that serves a role, while there is one. */
  pid(role: Role): number | undefined;
  /** Resolves when every role is served again. */
  ready(): Promise<void>;
  stop(): Promise<void>;
}

const MAIN = fileURLToPath(new URL('./main.ts', import.meta.url));
const TSX = pathToFileURL(createRequire(import.meta.url).resolve('tsx')).href;
const FIRST_BACKOFF_MS = 250;
const LONGEST_BACKOFF_MS = 10_000;

/**
 * All workers of a small installation, a process per group of roles. A process that dies is started again, after a
 * pause that grows while it keeps dying. They end with this process, whichever way it ends.
 * Throws GradusError('infra', 'worker-start') when one does not come up the first time.
 */
export async function startWorkers(settings: WorkerSettings, options: WorkersOptions = {}): Promise<Workers> {
  const processes = (options.processes ?? PROCESSES).map(
    (roles) => new SupervisedProcess(roles, settings, options),
  );
  try {
    await Promise.all(processes.map((process) => process.up()));
  } catch (error) {
    await Promise.all(processes.map((process) => process.stop()));
    throw error;
  }
  return {
    descriptions: processes.flatMap((process) => process.descriptions),
    pid: (role) => processes.find((process) => process.roles.includes(role))?.pid,
    ready: async () => {
      await Promise.all(processes.map((process) => process.up()));
    },
    stop: async () => {
      await Promise.all(processes.map((process) => process.stop()));
    },
  };
}

class SupervisedProcess {
  readonly roles: readonly Role[];
  descriptions: string[] = [];
  private readonly settings: WorkerSettings;
  private readonly options: WorkersOptions;
  private child: ChildProcess | undefined;
  private starting: Promise<void>;
  private stopping = false;
  private backoff = FIRST_BACKOFF_MS;

  constructor(roles: readonly Role[], settings: WorkerSettings, options: WorkersOptions) {
    this.roles = roles;
    this.settings = settings;
    this.options = options;
    this.starting = this.start();
    this.starting.catch(() => undefined);
  }

  get pid(): number | undefined {
    return this.child?.exitCode === null && this.child.signalCode === null ? this.child.pid : undefined;
  }

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
      child.once('message', (message: { descriptions: string[] }) => {
        this.descriptions = message.descriptions;
        this.backoff = FIRST_BACKOFF_MS;
        child.once('exit', (code, signal) => this.died(signal ?? `exit ${code}`));
        resolve();
      });
      child.once('exit', (code, signal) => {
        reject(
          new GradusError(
            'infra',
            'worker-start',
            `the worker for ${this.roles.join(', ')} ended before it was ready (${signal ?? `exit ${code}`})` +
              (this.options.logFile === undefined ? '' : `: see ${this.options.logFile}`),
            { retryable: true },
          ),
        );
      });
    });
  }

  private died(how: string): void {
    if (this.stopping) return;
    this.options.onEvent?.(`worker for ${this.roles.join(', ')} died (${how}); starting it again`);
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
    const { logFile, env } = this.options;
    if (logFile !== undefined) mkdirSync(dirname(logFile), { recursive: true });
    const log = logFile === undefined ? 'inherit' : openSync(logFile, 'a');
    const child = fork(MAIN, [...this.roles], {
      execArgv: ['--import', TSX],
      env: { ...process.env, ...settingsToEnv(this.settings), ...env },
      stdio: ['ignore', log, log, 'ipc'],
      // A group of its own: Ctrl-C reaches the one who supervises, who then ends the workers in order.
      detached: true,
    });
    if (typeof log === 'number') closeSync(log);
    return child;
  }
}
