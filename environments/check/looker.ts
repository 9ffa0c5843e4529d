import { fork } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { ownModule, TYPESCRIPT } from '../../engine/own-module.ts';
import type { LookOptions, Seen } from './look.ts';
import type { FromLooker, ToLooker } from './process.ts';

export interface LookerOptions extends LookOptions {
  /** How long one environment may take once it is prepared, and a module to be loaded, seconds. */
  seconds: number;
  signal: AbortSignal;
}

/** Why something could not be looked at, and what helps where it is known. */
export interface Failure {
  what: string;
  remedy?: string;
  /** The process had died, and another one could not load the module. */
  again?: boolean;
}

export type Looked = { seen: Seen } | { failed: Failure };

/** What takes as long as it may without keeping its process says so itself, in this time, seconds. */
const GRACE_S = 1;
const HELD_REMEDY =
  'A run would end the process, with the other episodes in it: end the loop, or await long work.';

/**
 * One process that looks at environments, one after the other. Where it dies, or has to be ended, another one goes on with
 * the next environment.
 */
export class Looker {
  /** Modules that could not be loaded. */
  readonly broken = new Map<string, Failure>();
  /** What users' code does now, in words. */
  doing = '';
  private readonly modules: readonly string[];
  private readonly options: LookerOptions;
  private environments: { name: string; file: string }[] = [];
  private child: ChildProcess | undefined;

  constructor(modules: readonly string[], options: LookerOptions) {
    this.modules = modules;
    this.options = options;
  }

  /** Loads the modules that can be loaded, and gives the environments that they have. */
  async load(): Promise<readonly { name: string; file: string }[]> {
    for (;;) {
      const files = this.modules.filter((file) => !this.broken.has(file));
      let loading = files[0];
      if (loading === undefined || this.options.signal.aborted) return (this.environments = []);
      this.child = fork(ownModule('process', import.meta.url), files, {
        // The modules of users are TypeScript, also where ours are not.
        execArgv: ['--import', TYPESCRIPT],
        stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
      });
      this.doing = `Loading ${loading}`;
      const loaded = await this.hear(this.child, (message) => {
        if ('loading' in message) ({ loading } = message);
        if ('broken' in message) this.broken.set(message.broken.file, { what: message.broken.what });
        return 'loaded' in message ? message.loaded : undefined;
      });
      if ('heard' in loaded) return (this.environments = loaded.heard);
      if (!this.options.signal.aborted) this.broken.set(loading, loaded.failed);
    }
  }

  async look(name: string): Promise<Looked> {
    const known = this.environments.find((one) => one.name === name);
    if (known === undefined) return { failed: { what: 'it is there in one process and not in another' } };
    if (this.child === undefined) {
      await this.load();
      const broken = this.broken.get(known.file);
      // Those of a module that is not loaded a second time are listed all the same.
      if (broken) this.environments.push(known);
      if (broken) {
        return { failed: { ...broken, what: `it cannot be loaded again: ${broken.what}`, again: true } };
      }
    }
    const { most, performOnce } = this.options;
    this.child!.send({ look: name, most, performOnce } satisfies ToLooker);
    const looked = await this.hear(this.child!, (message): Looked | undefined => {
      if ('seen' in message) return message;
      return 'failed' in message ? { failed: { what: message.failed } } : undefined;
    });
    return 'heard' in looked ? looked.heard : looked;
  }

  close(): void {
    this.child?.kill('SIGKILL');
    this.child = undefined;
  }

  /** Listens until `read` gives something, the process dies, keeps itself from anything else, or the time is over. */
  private async hear<T>(
    child: ChildProcess,
    read: (message: FromLooker) => T | undefined,
  ): Promise<{ heard: T } | { failed: Failure }> {
    const { seconds, signal } = this.options;
    let resolve!: (outcome: { heard: T } | { failed: Failure }) => void;
    const promise = new Promise<{ heard: T } | { failed: Failure }>((settle) => (resolve = settle));
    let begun = false;
    let mayKeep: number | undefined;
    let silence: NodeJS.Timeout | undefined;
    const end = (how: string, remedy?: string): void =>
      resolve({ failed: { what: `${this.doing} ${how}`, ...(remedy !== undefined && { remedy }) } });
    const late = (): void =>
      end(begun ? `was under way when ${seconds} s were over` : `took longer than ${seconds} s`);
    let timer = setTimeout(late, seconds * 1000);
    const listen = (message: FromLooker): void => {
      if ('begun' in message) {
        begun = true;
        this.doing = message.begun.what;
        mayKeep = message.begun.seconds;
      } else if ('loading' in message || 'prepared' in message) {
        if ('loading' in message) this.doing = `Loading ${message.loading}`;
        clearTimeout(timer);
        timer = setTimeout(late, seconds * 1000);
      }
      const heard = read(message);
      if (heard !== undefined) resolve({ heard });
      clearTimeout(silence);
      if (mayKeep === undefined) return;
      const how = `blocked its process for longer than ${mayKeep} s`;
      silence = setTimeout(() => end(how, HELD_REMEDY), (mayKeep + GRACE_S) * 1000);
    };
    const exited = (code: number | null, by: string | null): void =>
      end(`ended the process (${by ?? `exit code ${code}`})`);
    const stop = (): void => end('was interrupted');
    child.on('message', listen).once('exit', exited);
    signal.addEventListener('abort', stop, { once: true });
    try {
      const outcome = await promise;
      if ('failed' in outcome) await this.ended(child);
      return outcome;
    } finally {
      clearTimeout(timer);
      clearTimeout(silence);
      child.off('message', listen).off('exit', exited);
      signal.removeEventListener('abort', stop);
    }
  }

  private async ended(child: ChildProcess): Promise<void> {
    this.child = undefined;
    if (child.exitCode !== null || child.signalCode !== null) return;
    const gone = once(child, 'exit');
    child.kill('SIGKILL');
    await gone;
  }
}
