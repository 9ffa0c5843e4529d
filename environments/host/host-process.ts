import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { setMaxListeners } from 'node:events';
import type { Duplex, Readable } from 'node:stream';
import { GradusError, messageOf } from '../../core/errors.ts';
import type { Incident } from '../../core/episode/incidents.ts';
import type { Json } from '../../core/json/json.ts';
import { ownModule, TYPESCRIPT } from '../../engine/own-module.ts';
import { readAnswers } from './answer-shapes.ts';
import { boundaryOf, functionsOf, toError } from './asks.ts';
import type { HostAnswer, HostRequest } from './asks.ts';
import type { BoundedOutput } from './bounded-output.ts';
import { Channel } from './channel.ts';
import { endDescendants } from './descendants.mjs';
import type { EnvironmentFacts } from './facts.ts';
import { CHANGED, readFromHost, TOO_MUCH_MEMORY } from './messages.ts';
import type { HeardFromHost, HostModule, ToHost } from './messages.ts';

export interface HostOptions {
  module: HostModule;
  /** Where what users' code prints goes. */
  output: BoundedOutput;
  /** All that the process sees of the surroundings of this one. */
  env: Record<string, string>;
  /** Handed over when it has loaded its modules: what functions may read that ask for it by name. */
  variables: Record<string, string>;
  /** Memory that it may take, bytes. */
  memoryBytes: number;
  /** How long a module may take to be loaded, milliseconds. */
  loadMs: number;
  /** What nobody caught, in the environment that it began in where that is known. */
  onLateError: (environment: string | null, message: string) => void;
  /** Told once of a process that has ended though nobody asked for that, with what it was doing. */
  onDeath: (death: HostDied, doing: readonly string[]) => void;
}

/** A host ended while it was asked: whoever was asking may ask another one. */
export class HostDied extends Error {
  readonly kind: Extract<Incident['kind'], 'hung' | 'crashed' | 'memory'>;

  constructor(kind: HostDied['kind'], message: string) {
    super(message);
    this.name = 'HostDied';
    this.kind = kind;
  }
}

interface Call {
  ask: HostRequest;
  /** How long it may block, milliseconds. */
  blockMs: number;
  /** How long it may take in all, and has taken, of the time in which the host's event loop turned, milliseconds. */
  deadlineMs: number;
  takenMs: number;
  heartbeat: ((details?: Json) => void) | undefined;
  settle(answers: HostAnswer[]): void;
  fail(error: Error): void;
}

/**
 * How long a process may take until it begins with its module, milliseconds: a busy machine is slow, nothing but code of ours
 * runs, and a worker whose host does not come up ends.
 */
const START_MS = 5 * 60_000;
/** How often it is looked whether a host hangs, and what is added to what a call may take, milliseconds. */
const WATCH_MS = 250;
const GRACE_MS = 1000;
/** What was called off has this long to let go of the event loop, milliseconds. */
const CALLED_OFF_MS = 5000;
/** Of what it wrote, in characters. */
const LONGEST_WORDS = 4000;
/** How long a host that has exited may have something to be read, milliseconds. */
const LAST_WORDS_MS = 500;

/** Loaded before tsx, which looks at each file that comes after it: a fifth of what a start takes. */
const ZOD = import.meta.resolve('zod');
const MEGABYTE = 2 ** 20;

type Loading = Extract<HeardFromHost, { is: 'loading' | 'refused' | 'ready' }>;

/** A process in which users' code runs. It is killed when it hangs, and ends with this one. */
export class HostProcess {
  facts: EnvironmentFacts[] = [];
  private readonly options: HostOptions;
  /** What it began to say has this before it. Users' code cannot read it, as it could a variable or an argument. */
  private readonly ownMark = randomUUID();
  /** In the environment of all that is started there. */
  private readonly familyMark = `GRADUS_HOST=${randomUUID()}`;
  private readonly child: ChildProcess;
  private readonly channel: Channel;
  private readonly ready: Promise<void>;
  private readonly exited: Promise<void>;
  private readonly calls = new Map<number, Call>();
  /** Messages as JSON. */
  private outbox: string[] = [];
  private lastId = 0;
  /** When it last gave a sign of life, or was idle. */
  private sign = performance.now();
  private watched = performance.now();
  private readonly watch: NodeJS.Timeout;
  private loading = '';
  private onLoading: (message: Loading) => void = () => undefined;
  private death: HostDied | undefined;
  private ended = false;
  private closing = false;
  /** The end of what it wrote to stderr. */
  private words = '';
  /** V8 has said so, before it wrote its stack. */
  private outOfHeap = false;

  constructor(options: HostOptions) {
    this.options = options;
    const heap = Math.floor((options.memoryBytes * 0.75) / MEGABYTE);
    this.child = spawn(
      process.execPath,
      [
        `--max-old-space-size=${heap}`,
        '--import',
        ZOD,
        '--import',
        // The modules of users are TypeScript, also where ours are not.
        TYPESCRIPT,
        ownModule('process', import.meta.url),
        String(options.memoryBytes),
        this.familyMark,
      ],
      {
        env: { ...options.env, ...Object.fromEntries([this.familyMark.split('=')]) } as Record<
          string,
          string
        >,
        stdio: ['ignore', 'pipe', 'pipe', 'pipe', 'pipe'],
        // A group of its own: what users' code has started ends with it.
        detached: true,
      },
    );
    this.channel = new Channel(
      this.child.stdio[3] as Duplex,
      {
        message: (answer) => this.hear(answer),
        nonsense: (why) => this.die('crashed', why),
        ended: () => this.orphaned('closed its channel to the worker'),
      },
      { mark: this.ownMark },
    );
    this.child.stdout!.on('data', (output: Buffer) => options.output.write(output));
    this.child.stderr!.on('data', (output: Buffer) => {
      this.words = (this.words + output.subarray(-LONGEST_WORDS).toString()).slice(-LONGEST_WORDS);
      if (/heap out of memory/.test(this.words)) this.outOfHeap = true;
      options.output.write(output);
    });
    let message = '';
    const lifeline = this.child.stdio[4] as Readable;
    lifeline
      .setEncoding('utf8')
      .on('data', (text: string) => (message = (message + text).slice(-LONGEST_WORDS)));
    lifeline.on('error', () => undefined); // Its end tells.
    lifeline.once('close', () => this.orphaned('closed the pipe by which it knows of the worker'));
    this.exited = new Promise((resolve) => {
      const end = (how: string): void => {
        if (this.ended) return;
        this.ended = true;
        clearInterval(this.watch);
        this.kill();
        const death = (this.death ??= deathOf(how, message, this.outOfHeap, options.memoryBytes));
        const doing = [...this.calls.values()].flatMap(({ ask }) =>
          ask.items.flatMap((item) =>
            functionsOf(ask.kind, item).map((name) => `${name} of ${ask.environment}`),
          ),
        );
        if (!this.closing) options.onDeath(death, [...new Set(doing)]);
        this.failAll(death);
        resolve();
      };
      this.child.once('error', (error) => end(error.message));
      // What it has said must have been read; but a process of its own that outlives it may keep its pipes open.
      this.child.once('close', (code, signal) => end(signal ?? `exit code ${code}`));
      this.child.once('exit', (code, signal) =>
        setTimeout(() => end(signal ?? `exit code ${code}`), LAST_WORDS_MS),
      );
    });
    this.ready = this.load();
    this.ready.catch(() => undefined);
    this.watch = setInterval(() => this.lookAfter(), WATCH_MS);
    this.watch.unref();
  }

  get pid(): number | undefined {
    return this.child.pid;
  }

  get alive(): boolean {
    return !this.ended && this.death === undefined;
  }

  /** When it has loaded its modules. Throws GradusError('environment', …). */
  up(): Promise<void> {
    return this.ready;
  }

  /**
   * Asks. Rejects with HostDied, or the signal's reason. `blockMs`: how long the ask may keep the event loop from
   * turning before the host counts as hung; `deadlineMs`: for how long it may turn without an answer.
   */
  ask(
    ask: HostRequest,
    {
      signal,
      blockMs,
      deadlineMs,
      heartbeat,
    }: { signal: AbortSignal; heartbeat?: Call['heartbeat'] } & Pick<Call, 'blockMs' | 'deadlineMs'>,
  ): Promise<HostAnswer[]> {
    return new Promise((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason as Error);
      if (!this.alive) return reject(this.death ?? new HostDied('crashed', 'it has ended'));
      const id = ++this.lastId;
      const callOff = (): void => {
        call.blockMs = Math.min(call.blockMs, CALLED_OFF_MS);
        this.post({ is: 'cancel', id });
        reject(signal.reason as Error);
      };
      const call: Call = {
        ask,
        blockMs,
        deadlineMs,
        takenMs: 0,
        heartbeat,
        settle: (answers) => {
          signal.removeEventListener('abort', callOff);
          resolve(answers);
        },
        fail: (error) => {
          signal.removeEventListener('abort', callOff);
          reject(error);
        },
      };
      try {
        this.post({ is: 'ask', id, ask });
      } catch (cause) {
        // JSON is read at any depth and written at some thousand levels.
        const message = `a host cannot be asked about this: ${messageOf(cause)}`;
        return reject(new GradusError(boundaryOf(ask.kind), 'not-json', message, { cause }));
      }
      // Everything that an activity asks listens to the one signal.
      setMaxListeners(0, signal);
      signal.addEventListener('abort', callOff, { once: true });
      if (this.calls.size === 0) this.sign = performance.now();
      this.calls.set(id, call);
    });
  }

  /** Ends it; resolves when it is gone. */
  async close(): Promise<void> {
    this.closing = true;
    this.death ??= new HostDied('crashed', 'it was closed');
    this.kill();
    await this.exited;
  }

  private load(): Promise<void> {
    const { module, loadMs, variables } = this.options;
    return new Promise((resolve, reject) => {
      const refuse = (error: GradusError): void => {
        clearTimeout(timer);
        reject(error);
      };
      const within = (ms: number): NodeJS.Timeout =>
        setTimeout(() => this.die('hung', `took longer than ${ms / 1000} s`), ms);
      let timer = within(START_MS);
      const ended = (): void => {
        const how = this.death?.message ?? 'ended';
        refuse(
          new GradusError(
            'environment',
            'module',
            this.loading === ''
              ? `the host of environments ${how} before it could load anything: the machine may have too much else to do, or too little memory. Try again`
              : `${this.loading} ${how} while it was loaded: fix it`,
            { retryable: this.loading === '' },
          ),
        );
      };
      void this.exited.then(ended);
      this.onLoading = (message) => {
        if (message.is === 'loading') {
          this.loading = message.module;
          clearTimeout(timer);
          timer = within(loadMs);
        } else if (message.is === 'refused') {
          refuse(toError(message.error));
          void this.close();
        } else {
          clearTimeout(timer);
          this.facts = message.environments;
          if (Object.keys(variables).length > 0) this.post({ is: 'variables', values: variables });
          resolve();
        }
      };
      this.post({ is: 'load', module, mark: this.ownMark });
    });
  }

  private hear(answer: unknown): void {
    const messages = readFromHost(answer);
    if (!messages) return this.die('crashed', 'sent what is no message of a host');
    this.sign = performance.now();
    for (const message of messages) {
      if (message.is === 'loading' || message.is === 'refused' || message.is === 'ready')
        this.onLoading(message);
      else this.receive(message);
    }
  }

  private receive(message: Exclude<HeardFromHost, Loading>): void {
    if (message.is === 'alive') return;
    const call = message.id === null ? undefined : this.calls.get(message.id);
    if (message.is === 'heartbeat') call?.heartbeat?.(message.details);
    else if (message.is === 'late-error')
      this.options.onLateError(call?.ask.environment ?? null, message.message);
    else if (!call) this.die('crashed', 'answered what it was not asked');
    else {
      const answers = readAnswers(call.ask.kind, call.ask.items.length, message.answers);
      if ('fault' in answers) return this.die('crashed', answers.fault);
      this.calls.delete(message.id);
      call.settle(answers.value);
    }
  }

  private post(message: ToHost): void {
    if (this.outbox.push(JSON.stringify(message)) > 1) return;
    setImmediate(() => {
      const messages = this.outbox;
      this.outbox = [];
      this.channel.say(`[${messages.join(',')}]`);
    });
  }

  private lookAfter(): void {
    const now = performance.now();
    // This process itself was blocked, or asleep: what the host has said meanwhile is not read yet.
    const away = now - this.watched > 2 * WATCH_MS + GRACE_MS;
    // A sign since the last look: its event loop turns, and what it was asked might have been answered.
    const turned = !away && this.sign > this.watched;
    if (away) this.sign = now;
    this.watched = now;
    if (this.calls.size === 0 || this.death) return;
    for (const call of this.calls.values()) {
      if (turned) call.takenMs += WATCH_MS;
      if (call.takenMs > call.deadlineMs) {
        const { kind, environment } = call.ask;
        return this.die(
          'hung',
          `gave no answer to ${kind} of ${environment} in ${(call.deadlineMs / 1000).toFixed(1)} s`,
        );
      }
    }
    const limit = Math.max(...[...this.calls.values()].map(({ blockMs }) => blockMs));
    const silent = now - this.sign;
    if (silent > limit + GRACE_MS)
      this.die('hung', `gave no sign of life for ${(silent / 1000).toFixed(1)} s`);
  }

  private die(kind: HostDied['kind'], message: string): void {
    this.death ??= new HostDied(kind, message);
    this.kill();
  }

  /** It cannot be heard any more. One that has ended says so itself, which may be heard a moment later. */
  private orphaned(how: string): void {
    setTimeout(() => {
      if (!this.ended) this.die('crashed', how);
    }, LAST_WORDS_MS).unref();
  }

  /** With all that it has started, also in groups and sessions of their own. */
  private kill(): void {
    if (this.child.pid === undefined) return;
    endDescendants(this.child.pid, this.familyMark);
    try {
      process.kill(-this.child.pid, 'SIGKILL');
    } catch {
      // It is gone already, or was never there.
    }
  }

  private failAll(death: HostDied): void {
    this.death ??= death;
    const calls = [...this.calls.values()];
    this.calls.clear();
    for (const call of calls) call.fail(death);
  }
}

function deathOf(how: string, text: string, outOfHeap: boolean, memoryBytes: number): HostDied {
  const limit = `${Math.round(memoryBytes / MEGABYTE)} MB`;
  const changed = text.split(CHANGED)[1];
  if (changed !== undefined) {
    return new HostDied(
      'crashed',
      `changed ${changed}, which all code in its process uses: do that when its module is loaded, or in prepare()`,
    );
  }
  if (text.includes(TOO_MUCH_MEMORY)) return new HostDied('memory', `took more than ${limit} of memory`);
  if (outOfHeap) {
    return new HostDied('memory', `took more than ${limit} of memory, three quarters of which may be heap`);
  }
  return new HostDied('crashed', `ended its process (${how})`);
}
