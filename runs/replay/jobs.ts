import { fork } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { isDeepStrictEqual } from 'node:util';
import type { ReplayAnswer, ReplayRequest } from '../../activities/replay/replay.ts';
import { GradusError } from '../../core/errors.ts';
import { OWN_LOADER, ownModule } from '../../engine/own-module.ts';

/** What the process of a replay says. */
export type FromReplay =
  | { is: 'progress'; tokens: number; total: number | null }
  | { is: 'done'; answer: ReplayAnswer }
  | { is: 'failed'; reason: string };

/** How a replay stands. Times are epoch milliseconds. */
export type ReplayState =
  | { kind: 'running'; since: number; progress: { tokens: number; total: number | null } | null }
  | { kind: 'done'; at: number; answer: ReplayAnswer }
  | { kind: 'failed'; at: number; reason: string };

export interface ReplayJob {
  id: number;
  request: ReplayRequest;
  state: ReplayState;
}

export interface ReplayJobsOptions {
  /** Of the processes: where the store is, and what they may know. */
  env: Record<string, string>;
  /** What no reason may hold, whatever an error says. */
  secrets?: readonly string[];
  /** What a replay may take, milliseconds. Default: ten minutes. */
  limitMs?: number;
}

const MAIN = ownModule('../../cli/replay-process', import.meta.url);
const LIMIT_MS = 10 * 60_000;
/** Replays that are remembered, and what of them all together: tokens with their alternatives, some hundred bytes each. */
const MOST = 8;
const MOST_TOKENS = 400_000;
/** Characters of what a process said last that are told. */
const MOST_WORDS = 1000;

/**
 * Replays that pages ask for, one at a time, each in a process of its own, so that whoever serves pages neither waits for one
 * nor holds a model. What came of the last few is remembered; nothing is stored.
 */
export class ReplayJobs {
  private readonly options: ReplayJobsOptions;
  /** Newest first. */
  private jobs: ReplayJob[] = [];
  private running:
    { job: ReplayJob; child: ChildProcess; timer: NodeJS.Timeout; gone: Promise<void> } | undefined;
  private lastId = 0;

  constructor(options: ReplayJobsOptions) {
    this.options = options;
  }

  /** Those of an episode, newest first. */
  of(place: ReplayRequest['place']): ReplayJob[] {
    return this.jobs.filter(({ request }) => isDeepStrictEqual(request.place, place));
  }

  /** The one that runs now. */
  get current(): ReplayJob | null {
    return this.running?.job ?? null;
  }

  /** One that is asked for while it runs is that one. Throws GradusError('infra', 'replay-running') while another one runs. */
  start(request: ReplayRequest): ReplayJob {
    const { current } = this;
    if (current) {
      if (isDeepStrictEqual(current.request, request)) return current;
      throw new GradusError(
        'infra',
        'replay-running',
        'another replay runs, and each takes a model into memory: wait for its end, or stop it',
      );
    }
    const { env, limitMs = LIMIT_MS } = this.options;
    const job: ReplayJob = {
      id: ++this.lastId,
      request,
      state: { kind: 'running', since: Date.now(), progress: null },
    };
    this.jobs = [job, ...this.jobs].slice(0, MOST);
    const child = fork(MAIN, [JSON.stringify(request)], {
      execArgv: [...OWN_LOADER],
      env,
      stdio: ['ignore', 'inherit', 'pipe', 'ipc'],
    });
    /** The end of what it wrote to stderr. */
    let words = '';
    child.stderr!.setEncoding('utf8').on('data', (text: string) => {
      words = (words + text).slice(-MOST_WORDS);
      process.stderr.write(text);
    });
    const gone = new Promise<void>((resolve) => {
      child.once('error', (error) => {
        this.end(job, { kind: 'failed', at: Date.now(), reason: error.message });
        resolve();
      });
      child.once('close', (code, signal) => {
        const reason = `its process ended (${signal ?? `exit code ${code}`}): ${words.trim() || 'there may be too little memory for its model'}`;
        this.end(job, { kind: 'failed', at: Date.now(), reason });
        resolve();
      });
    });
    child.on('message', (message: FromReplay) => {
      if (job.state.kind !== 'running') return;
      if (message.is === 'progress') job.state.progress = { tokens: message.tokens, total: message.total };
      else if (message.is === 'done') this.end(job, { kind: 'done', at: Date.now(), answer: message.answer });
      else this.end(job, { kind: 'failed', at: Date.now(), reason: message.reason });
    });
    const timer = setTimeout(() => {
      const reason = `it took longer than ${limitMs / 1000} s: \`gradus replay\` takes as long as it takes`;
      this.end(job, { kind: 'failed', at: Date.now(), reason });
    }, limitMs);
    timer.unref();
    this.running = { job, child, timer, gone };
    return job;
  }

  /** Ends the one that runs, if it is this one. */
  stop(id: number): void {
    const { current } = this;
    if (current?.id === id) this.end(current, { kind: 'failed', at: Date.now(), reason: 'it was stopped' });
  }

  async close(): Promise<void> {
    const { running } = this;
    if (!running) return;
    this.stop(running.job.id);
    await running.gone;
  }

  private withoutSecrets(state: ReplayState): ReplayState {
    if (state.kind !== 'failed') return state;
    const { secrets = [] } = this.options;
    const named = secrets.filter((secret) => secret !== '');
    return { ...state, reason: named.reduce((rest, secret) => rest.replaceAll(secret, '…'), state.reason) };
  }

  private end(job: ReplayJob, state: ReplayState): void {
    if (job.state.kind === 'running') job.state = this.withoutSecrets(state);
    let left = MOST_TOKENS - tokensOf(job);
    this.jobs = this.jobs.filter((one) => one === job || (left -= tokensOf(one)) >= 0);
    if (this.running?.job !== job) return;
    const { child, timer } = this.running;
    clearTimeout(timer);
    child.kill('SIGKILL');
    this.running = undefined;
  }
}

const tokensOf = ({ request, state }: ReplayJob): number => {
  const { replay, fork } = state.kind === 'done' ? state.answer : { replay: null, fork: null };
  return ((replay ?? fork)?.tokens.length ?? 0) * (1 + request.alternatives);
};
