import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import getPort from 'get-port';

const START_SECONDS = 180;

/** What the servers need to be told besides where they are. */
const OPTIONS = {
  skyrl: (folder: string): Record<string, string> => ({
    backend: 'jax',
    'backend-config': JSON.stringify({ max_lora_adapters: 6, max_lora_rank: 8 }),
    'checkpoints-base': path.join(folder, 'saved'),
    'database-url': `sqlite:///${folder}/db`,
  }),
  tuft: (folder: string): Record<string, string> => ({ folder, key: KEY }),
};
/** That TuFT asks for; SkyRL asks for none. */
export const KEY = 'tml-parity';

interface ServerOptions {
  python: string;
  /** The base model's folder. */
  model: string;
  /** Where its database and what is saved there are. */
  folder: string;
}

/**
 * SkyRL's server of Tinker's API, in JAX, or TuFT's, in PyTorch, on processors. SkyRL's engine is a process of its own, and
 * ends with the group.
 */
export class PythonServer {
  readonly url: string;
  private readonly command: [string, ...string[]];
  private server: ChildProcess;

  private constructor(url: string, command: [string, ...string[]]) {
    this.url = url;
    this.command = command;
    this.server = this.spawn();
  }

  static async start(
    name: keyof typeof OPTIONS,
    { python, model, folder }: ServerOptions,
  ): Promise<PythonServer> {
    const port = await getPort({ host: '127.0.0.1' });
    const options = { port: String(port), 'base-model': model, ...OPTIONS[name](folder) };
    const flags = Object.entries(options).flatMap(([option, value]) => [`--${option}`, value]);
    const script = path.join(import.meta.dirname, `serve_${name}.py`);
    const command = [python, script, ...flags] as [string, ...string[]];
    const server = new PythonServer(`http://127.0.0.1:${port}`, command);
    await server.answering();
    return server;
  }

  /** SIGKILL, and another one with the same database. */
  async restart(): Promise<void> {
    await this.kill();
    this.server = this.spawn();
    await this.answering();
  }

  async kill(): Promise<void> {
    if (this.server.exitCode !== null || this.server.signalCode !== null) return;
    process.kill(-this.server.pid!, 'SIGKILL');
    await once(this.server, 'exit');
  }

  private spawn(): ChildProcess {
    const [python, ...rest] = this.command;
    return spawn(python, rest, { stdio: 'ignore', detached: true });
  }

  private async answering(): Promise<void> {
    const until = Date.now() + START_SECONDS * 1000;
    for (;;) {
      if (this.server.exitCode !== null) throw new Error(`the server ended with ${this.server.exitCode}`);
      const answer = await fetch(`${this.url}/api/v1/healthz`).catch(() => undefined);
      if (answer?.ok) return;
      if (Date.now() > until) throw new Error(`the server did not answer within ${START_SECONDS} s`);
      await wait(200);
    }
  }
}
