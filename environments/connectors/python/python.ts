import { availableParallelism } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Json } from '../../../core/json/json.ts';
import { taskRefOf } from '../../../core/training/tasks-again.ts';
import type { Need, Task } from '../../contract/environment.ts';
import type { Acted, SessionEnd, Session, SessionPlace } from '../../contract/session.ts';
import { findInterpreter, setUpCommand } from './interpreter.ts';
import type { Interpreter } from './interpreter.ts';
import { PythonServer } from './python-server.ts';
import type { PythonRequestOptions, PythonWorker, Request } from './python-server.ts';

export interface PythonOptions extends Interpreter {
  /** Processes that serve calls side by side; by default as many as there are cores, and four at most. */
  processes?: number;
  /** One call, and one act of a session, seconds; 30 unless given. */
  timeoutSeconds?: number;
  /** How long the module's import may take, seconds; 60 unless given. */
  startSeconds?: number;
  /** Address space of each process, bytes; 4 GB unless given. */
  memoryBytes?: number;
  /** Environment variables that it sees, besides those of the process that starts it. */
  variables?: Readonly<Record<string, string>>;
}

const GIGABYTE = 2 ** 30;
const modules = new Map<string, PythonModule>();

/**
 * A module of Python: a dotted name that its interpreter finds, or the file of a module, by path (from the working
 * directory) or URL. Nothing starts before the first call or `prepare`. The same module and options are the same pool.
 */
export function python(module: string | URL, options: PythonOptions = {}): PythonModule {
  const name = typeof module === 'string' ? module : fileURLToPath(module);
  const found = name.endsWith('.py') ? path.resolve(name) : name;
  const key = JSON.stringify([found, options]);
  const known = modules.get(key) ?? new PythonModule(found, options);
  modules.set(key, known);
  return known;
}

/** Functions of a Python module, and sessions in processes of their own. */
export class PythonModule {
  readonly module: string;
  private readonly options: PythonOptions;
  private readonly timeoutSeconds: number;
  private server: Promise<PythonServer> | undefined;
  private readonly idle: PythonWorker[] = [];
  private readonly queue: (() => void)[] = [];
  private free: number;

  constructor(module: string, options: PythonOptions) {
    this.module = module;
    this.options = options;
    this.timeoutSeconds = options.timeoutSeconds ?? 30;
    this.free = options.processes ?? Math.min(4, availableParallelism());
  }

  /**
   * Has the module imported: to be awaited in an environment's `prepare`, so that the import is on no call's time.
   * Throws GradusError('environment', 'python-missing' | 'python-packages' | 'python-import' | 'python-start').
   */
  async prepare(): Promise<void> {
    await this.started();
  }

  /**
   * What a function of the module returns, as JSON. `random` and `numpy.random` are seeded by function and arguments. The
   * time-out runs from when a process takes the call. Throws what `PythonWorker.ask` and `prepare` throw.
   */
  async call(
    name: string,
    args: readonly Json[] = [],
    asked: Partial<PythonRequestOptions> = {},
  ): Promise<Json> {
    const ask = this.asked(asked);
    await this.turn(ask.signal);
    try {
      const worker = await this.take();
      try {
        return await worker.ask({ do: 'call', function: name, arguments: [...args] }, ask);
      } finally {
        if (worker.alive) this.idle.push(worker);
      }
    } finally {
      this.pass();
    }
  }

  /**
   * A session in a process of its own, which begins as the module is after its import: nothing that others do is felt.
   * The module's `open(task, seed)` returns it: an object with `act(name, arguments)`, and `end(answer, by)` and `close()`
   * where it likes. `random` and `numpy.random` are seeded by the task's coordinates.
   */
  async open(task: Task, place: SessionPlace): Promise<Session> {
    const { ref, prompt, answer = null, info = null } = task;
    const worker = (await this.started()).fork();
    const ask = (request: Request, signal: AbortSignal): Promise<Json> =>
      worker.ask(request, this.asked({ signal }));
    try {
      await ask({ do: 'open', task: { ref: { ...taskRefOf(ref) }, prompt, answer, info } }, place.signal);
    } catch (error) {
      worker.kill();
      throw error;
    }
    return {
      act: async ({ name, arguments: args }, { signal }) =>
        withoutNulls(await ask({ do: 'act', name, arguments: args }, signal)) as Acted,
      end: async ({ answer, by }, signal) =>
        (withoutNulls(await ask({ do: 'end', answer, by }, signal)) ?? {}) as SessionEnd,
      close: async () => {
        try {
          if (worker.alive) await worker.ask({ do: 'close' }, this.asked({}));
        } finally {
          worker.kill();
        }
      },
    };
  }

  /** Whether its interpreter is there, and how it is set up. */
  async need(): Promise<Need> {
    try {
      return { what: `Python: ${await findInterpreter(this.options)}`, present: true, setUp: '' };
    } catch (error) {
      const { requirements } = this.options;
      if (requirements === undefined) throw error;
      return {
        what: `the Python packages of ${this.module}`,
        present: false,
        setUp: setUpCommand(requirements),
      };
    }
  }

  /** Ends its processes; the next call starts them again. */
  async close(): Promise<void> {
    const { server } = this;
    this.server = undefined;
    await (await server?.catch(() => undefined))?.closed();
  }

  private asked({
    signal = NEVER,
    timeoutSeconds = this.timeoutSeconds,
  }: Partial<PythonRequestOptions>): PythonRequestOptions {
    return { signal, timeoutSeconds };
  }

  /** Waits until one of the processes is free. */
  private async turn(signal: AbortSignal): Promise<void> {
    if (this.free > 0) this.free--;
    else await new Promise<void>((resolve) => this.queue.push(resolve));
    if (signal.aborted) this.pass();
    signal.throwIfAborted();
  }

  /** To whoever has waited longest. */
  private pass(): void {
    const next = this.queue.shift();
    if (next) next();
    else this.free++;
  }

  private async take(): Promise<PythonWorker> {
    for (let worker = this.idle.pop(); worker; worker = this.idle.pop()) if (worker.alive) return worker;
    return (await this.started()).fork();
  }

  private async started(): Promise<PythonServer> {
    const { server } = this;
    const known = await server?.catch(() => undefined);
    if (this.server === server && !known?.alive) this.server = undefined;
    const starting = (this.server ??= this.start());
    starting.catch(() => {
      if (this.server === starting) this.server = undefined;
    });
    return starting;
  }

  private async start(): Promise<PythonServer> {
    const { startSeconds = 60, memoryBytes = 4 * GIGABYTE, variables = {} } = this.options;
    const python = await findInterpreter(this.options);
    const server = new PythonServer({ python, module: this.module, memoryBytes, startSeconds, variables });
    await server.up();
    return server;
  }
}

/** What Python says with None is what is not there. */
export function withoutNulls(value: Json): Json {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).filter(([, field]) => field !== null));
}

const NEVER = new AbortController().signal;
