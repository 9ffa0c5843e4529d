import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import type { Duplex, Readable } from 'node:stream';
import { GradusError } from '../../../core/errors.ts';
import type { Json } from '../../../core/json/json.ts';
import { ToolRefusal } from '../../contract/environment.ts';

const RUNNER = path.join(import.meta.dirname, 'runner', 'serve.py');
/** The descriptor over which it talks: what Python prints goes to stdout and stderr, and is no answer. */
const CHANNEL = 3;
/** How long it may take to confirm that a process is gone before it counts as stuck itself, milliseconds. */
const STUCK_MS = 5000;
/** Of what it prints, the end is told where something goes wrong, characters. */
const LONGEST_WORDS = 2000;

export interface ServerOptions {
  /** The interpreter. */
  python: string;
  /** A dotted name, or a file that ends with `.py`. */
  module: string;
  /** Address space of each process, bytes. */
  memoryBytes: number;
  /** How long the import may take, seconds. */
  startSeconds: number;
  /** Environment variables, besides those of this process. */
  variables: Readonly<Record<string, string>>;
}

export interface PythonRequestOptions {
  signal: AbortSignal;
  timeoutSeconds: number;
}

/** What a process is asked: the name of a method of `Answering` in runner/worker.py, and what it reads. */
export type Request = { do: 'call' | 'open' | 'act' | 'end' | 'close' } & { [field: string]: Json };

interface Answer {
  id: number;
  value?: Json;
  refused?: string;
  error?: { type: string; message: string; traceback: string };
  /** It should not be called again. */
  worn?: true;
}

/**
 * A Python process that has imported a module and forks processes that have it, in milliseconds: so a slow import is paid
 * once, and a process can be killed lightly. It runs nothing of the module but its import, and ends with this process.
 */
export class PythonServer {
  readonly options: ServerOptions;
  private readonly child: ChildProcess;
  private readonly channel: Duplex;
  private readonly workers = new Map<number, PythonWorker>();
  private readonly started: Promise<void>;
  private readonly exited: Promise<unknown>;
  private onReady!: () => void;
  private onFailed!: (error: GradusError) => void;
  private lastNumber = 0;
  private dead = false;
  private unread: Buffer[] = [];
  private words = '';

  constructor(options: ServerOptions) {
    this.options = options;
    this.child = spawn(options.python, ['-u', RUNNER, options.module, String(options.memoryBytes)], {
      env: { ...process.env, ...REPEATABLE, ...options.variables },
      stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
      // A group of its own: whoever kills ours leaves the process that stands over it (runner/process_guard.py) the moment in
      // which it ends all that is below it.
      detached: true,
    });
    this.channel = this.child.stdio[CHANNEL] as Duplex;
    this.channel.on('data', (chunk: Buffer) => this.hear(chunk));
    this.channel.on('error', () => undefined); // Its end tells.
    for (const stream of [this.child.stdout!, this.child.stderr!]) {
      stream.setEncoding('utf8').on('data', (text: string) => {
        this.words = (this.words + text).slice(-LONGEST_WORDS);
        process.stderr.write(text);
      });
    }
    this.started = new Promise((resolve, reject) => {
      this.onReady = resolve;
      this.onFailed = reject;
    });
    this.started.catch(() => undefined);
    const late = setTimeout(() => {
      this.onFailed(startError(options, `took longer than ${options.startSeconds} s to import`));
      this.close();
    }, options.startSeconds * 1000);
    void this.started.then(
      () => clearTimeout(late),
      () => clearTimeout(late),
    );
    this.child.once('error', (error) => this.end(error.message));
    this.child.once('exit', (code, signal) => this.end(signal ?? `exit code ${code}`));
    this.exited = once(this.child, 'exit').catch(() => undefined);
    // Whoever waits for an answer has a timer; nobody else is to keep this process alive.
    this.child.unref();
    for (const stream of this.child.stdio) (stream as (Readable & { unref?(): void }) | null)?.unref?.();
  }

  get alive(): boolean {
    return !this.dead;
  }

  /** When the module is imported. Throws GradusError('environment', 'python-import' | 'python-start'). */
  up(): Promise<void> {
    return this.started;
  }

  /** A new process that has the module, as it was after its import. */
  fork(): PythonWorker {
    const number = ++this.lastNumber;
    const worker = new PythonWorker({
      module: this.options.module,
      send: (message) => this.post(`to ${number} ${message}`),
      kill: () => this.kill(number),
    });
    if (this.dead) worker.end('its server has ended');
    else {
      this.workers.set(number, worker);
      this.post(`fork ${number}`);
    }
    return worker;
  }

  /** Ends it, with all that it has started and forked. */
  close(): void {
    this.child.kill('SIGTERM');
  }

  /** As `close`, and resolves when it is gone. */
  async closed(): Promise<void> {
    this.close();
    this.child.ref();
    await this.exited;
  }

  private kill(number: number): void {
    this.post(`kill ${number}`);
    const stuck = (): void => {
      if (this.workers.has(number)) this.close();
    };
    setTimeout(stuck, STUCK_MS).unref();
  }

  private post(line: string): void {
    if (!this.dead) this.channel.write(`${line}\n`);
  }

  private hear(chunk: Buffer): void {
    if (!chunk.includes(NEWLINE)) {
      this.unread.push(chunk);
      return;
    }
    const heard = Buffer.concat([...this.unread, chunk]);
    let begin = 0;
    for (let end = heard.indexOf(NEWLINE); end >= 0; end = heard.indexOf(NEWLINE, begin)) {
      this.obey(heard.toString('utf8', begin, end));
      begin = end + 1;
    }
    this.unread = begin < heard.length ? [heard.subarray(begin)] : [];
  }

  private obey(line: string): void {
    const [, verb, number, text] = LINE.exec(line) ?? [];
    if (verb === 'ready') return this.onReady();
    if (verb === 'failed') {
      const { message, traceback } = JSON.parse(line.slice('failed '.length)) as Record<string, string>;
      return this.onFailed(importError(this.options, message!, traceback!));
    }
    const worker = this.workers.get(Number(number));
    if (verb === 'gone') this.workers.delete(Number(number));
    if (verb === 'gone') worker?.end(text!);
    else if (verb === 'from') worker?.hear(text!);
    else this.close(); // Something else writes to its descriptor: nothing that it says can be believed.
  }

  private end(how: string): void {
    if (this.dead) return;
    this.dead = true;
    this.channel.destroy();
    const words = this.words.trim();
    this.onFailed(startError(this.options, `ended (${how})${words && `: ${words}`}`));
    for (const worker of this.workers.values()) worker.end(`its server has ended (${how})`);
    this.workers.clear();
  }
}

const NEWLINE = 10;
const LINE = /^(ready|failed|from|gone)(?: (\d+)(?: (.*))?)?/su;

/** Sets iterate in the same order in every process, and sums have one order: replay depends on both. */
const REPEATABLE = {
  PYTHONHASHSEED: '0',
  PYTHONDONTWRITEBYTECODE: '1',
  PYTHONIOENCODING: 'utf-8',
  OMP_NUM_THREADS: '1',
  OPENBLAS_NUM_THREADS: '1',
  MKL_NUM_THREADS: '1',
};

interface Link {
  module: string;
  send(message: string): void;
  kill(): void;
}

/** One process, which does one thing at a time. Whoever does not get an answer in time ends it. */
export class PythonWorker {
  private readonly link: Link;
  private waiting: { id: number; settle(answer: Answer): void; fail(error: GradusError): void } | undefined;
  private lastId = 0;
  private ended: string | undefined;

  constructor(link: Link) {
    this.link = link;
  }

  get alive(): boolean {
    return this.ended === undefined;
  }

  /**
   * Throws ToolRefusal where Python raised Refusal, GradusError('environment', 'python-raised' | 'python-no-json'), those
   * with which it has ended (retryable: 'python-died' | 'python-memory' | 'python-timeout'), and the signal's reason,
   * with which it has ended, too.
   */
  async ask(request: Request, { signal, timeoutSeconds }: PythonRequestOptions): Promise<Json> {
    signal.throwIfAborted();
    if (this.ended !== undefined) throw this.died(this.ended);
    if (this.waiting) throw new Error('a Python process is asked one thing at a time');
    const id = ++this.lastId;
    let timer: NodeJS.Timeout | undefined;
    let callOff: (() => void) | undefined;
    try {
      const answer = await new Promise<Answer>((resolve, reject) => {
        this.waiting = { id, settle: resolve, fail: reject };
        const late = (): void => {
          if (this.waiting?.id === id) this.kill(this.late(request, timeoutSeconds));
        };
        // What came while this process was busy is read before anybody is called late.
        timer = setTimeout(() => setImmediate(late), timeoutSeconds * 1000);
        callOff = () => this.kill(signal.reason);
        signal.addEventListener('abort', callOff, { once: true });
        this.link.send(JSON.stringify({ ...request, id }));
      });
      return this.read(answer);
    } finally {
      clearTimeout(timer);
      if (callOff) signal.removeEventListener('abort', callOff);
    }
  }

  /** Ends it. Whoever waits gets `reason`. */
  kill(reason: unknown = this.died('was ended')): void {
    if (this.ended !== undefined) return;
    this.ended = 'was ended';
    this.link.kill();
    this.fail(reason);
  }

  /** What it says. */
  hear(line: string): void {
    if (this.ended !== undefined) return;
    let answer: Answer;
    try {
      answer = JSON.parse(line) as Answer;
    } catch {
      return this.kill(this.died('sent what is no JSON'));
    }
    const { waiting } = this;
    if (waiting?.id !== answer.id) return this.kill(this.died('answered what nobody had asked'));
    this.waiting = undefined;
    waiting.settle(answer);
  }

  /** It is gone. */
  end(how: string): void {
    this.ended ??= how;
    this.fail(this.died(how));
  }

  private fail(reason: unknown): void {
    const { waiting } = this;
    this.waiting = undefined;
    waiting?.fail(reason as GradusError);
  }

  private read({ value, refused, error, worn }: Answer): Json {
    if (worn) this.kill();
    if (refused !== undefined) throw new ToolRefusal(refused);
    if (!error) return value ?? null;
    const { type, message, traceback } = error;
    const { module } = this.link;
    if (type === 'NoJson') throw new GradusError('environment', 'python-no-json', `${module}: ${message}`);
    if (type === 'MemoryError') {
      this.kill();
      const why = `${module} took more memory than it may: raise memoryBytes, or let it take less`;
      throw new GradusError('environment', 'python-memory', why, { retryable: true });
    }
    throw new GradusError('environment', 'python-raised', `${module}: ${type}: ${message}\n${traceback}`);
  }

  private died(how: string): GradusError {
    const message = `a Python process of ${this.link.module} ${how}`;
    return new GradusError('environment', 'python-died', message, { retryable: true });
  }

  private late(request: Request, seconds: number): GradusError {
    const what =
      [request['function'], request['name']].find((name) => typeof name === 'string') ?? request.do;
    const message = `${what} of ${this.link.module} took longer than ${seconds} s: raise timeoutSeconds or make it faster`;
    return new GradusError('environment', 'python-timeout', message, { retryable: true });
  }
}

const startError = ({ module, python }: ServerOptions, how: string): GradusError =>
  new GradusError('environment', 'python-start', `${python} with ${module} ${how}`, { retryable: true });

const importError = ({ module, python }: ServerOptions, message: string, traceback: string): GradusError =>
  new GradusError(
    'environment',
    'python-import',
    `${python} cannot import ${module}: ${message}\n${traceback}`,
  );
