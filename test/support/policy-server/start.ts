import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { Fault, ServerOptions } from './server.ts';

export interface PolicyServer {
  url: string;
  /** The next `times` occasions for it meet this fault. */
  fault(name: Fault, times?: number): Promise<void>;
  /** Paths that were asked for so far. */
  asked(): Promise<string[]>;
  /** kill -9; resolves when it is dead. */
  kill(): Promise<void>;
  /** Again, on the same port, with what it began with. */
  restart(): Promise<void>;
}

const MAIN = fileURLToPath(new URL('main.ts', import.meta.url));

/** A policy server in a process of its own. */
export async function startPolicyServer(options: ServerOptions): Promise<PolicyServer> {
  let { child, port } = await launch(options, 0);
  const url = `http://127.0.0.1:${port}`;
  return {
    url,
    fault: async (name, times = 1) => {
      await fetch(`${url}/faults`, { method: 'POST', body: JSON.stringify({ name, times }) });
    },
    asked: async () => (await (await fetch(`${url}/asked`)).json()) as string[],
    kill: async () => {
      if (child.exitCode !== null || child.signalCode !== null) return;
      child.kill('SIGKILL');
      await once(child, 'exit');
    },
    restart: async () => {
      ({ child } = await launch(options, port));
    },
  };
}

async function launch(options: ServerOptions, port: number): Promise<{ child: ChildProcess; port: number }> {
  const args = ['--import', 'tsx', MAIN, '--options', JSON.stringify(options), '--port', String(port)];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  process.once('exit', () => child.kill('SIGKILL'));
  for await (const line of createInterface(child.stdout)) {
    if (line.startsWith('{"port"')) return { child, port: (JSON.parse(line) as { port: number }).port };
  }
  throw new Error('the policy server has ended before it was ready');
}
