import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { createInterface } from 'node:readline';
import type { Answer } from '../policy-server/http.ts';
import { spawnServer } from '../spawn-server.ts';

export type TinkerFlag = '--grad-clip' | '--seq-id' | '--mean' | '--protobuf' | `--key=${string}`;

export interface TinkerServerOptions {
  /** The base model, a folder in Hugging Face's layout. */
  model: string;
  /** Where what is saved lies, also after a restart. */
  state: string;
  flags?: TinkerFlag[];
}

/** What can be made to go wrong at a route, so many times. */
export interface TinkerFault {
  route: string;
  kind:
    | 'unavailable'
    | 'cut'
    | 'still'
    | 'try-again'
    | 'error-user'
    | 'error-server'
    | 'no-logprobs'
    | 'not-finite'
    // Of an archive: the adapter was trained at another alpha, or more than it can be comes.
    | 'alpha'
    | 'bomb'
    // `answer` in place of the route's own, and nothing is taken on; or of what was computed, and nothing is.
    | 'answer'
    | 'result';
  times: number;
  answer?: Answer;
}

/** A process that speaks Tinker's API, with our own learner behind it. */
export class TinkerServer {
  url = '';
  private child!: ChildProcess;
  private readonly options: TinkerServerOptions;

  private constructor(options: TinkerServerOptions) {
    this.options = options;
  }

  static async start(options: TinkerServerOptions): Promise<TinkerServer> {
    const server = new TinkerServer(options);
    await server.up('0');
    return server;
  }

  /** Killed, and started again on the same port: it remembers what was saved, and nothing else. */
  async restart(): Promise<void> {
    await this.kill();
    await this.up(new URL(this.url).port);
  }

  async kill(): Promise<void> {
    if (this.child.exitCode !== null || this.child.signalCode !== null) return;
    const gone = once(this.child, 'exit');
    this.child.kill('SIGKILL');
    await gone;
  }

  async fault(fault: TinkerFault): Promise<void> {
    await fetch(`${this.url}/faults`, { method: 'POST', body: JSON.stringify(fault) });
  }

  /** Routes that were asked since it was started, oldest first. */
  async asked(): Promise<string[]> {
    return (await (await fetch(`${this.url}/asked`)).json()) as string[];
  }

  private async up(port: string): Promise<void> {
    const { model, state, flags = [] } = this.options;
    const main = path.join(import.meta.dirname, 'main.ts');
    const child = spawnServer(main, ['--model', model, '--state', state, '--port', port, ...flags]);
    this.child = child;
    child.stderr.pipe(process.stderr);
    for await (const line of createInterface(child.stdout)) {
      this.url = `http://127.0.0.1:${(JSON.parse(line) as { port: number }).port}`;
      return;
    }
    throw new Error('the server of Tinker’s API ended before it was ready');
  }
}
