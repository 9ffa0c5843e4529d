import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { connect } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import getPort from 'get-port';

/** A server program that is told its port, and can be killed and started again on the same one. */
export class ServerProcess {
  readonly url: string;
  private readonly command: string;
  private readonly args: readonly string[];
  private readonly port: number;
  private child!: ChildProcess;
  private output = '';
  private complaints = '';

  private constructor(command: string, args: readonly string[], port: number) {
    this.command = command;
    this.args = args;
    this.port = port;
    this.url = `http://127.0.0.1:${port}`;
  }

  /** `PORT` among the arguments becomes the port. */
  static async start(command: string, args: readonly string[]): Promise<ServerProcess> {
    const server = new ServerProcess(command, args, await getPort({ host: '127.0.0.1' }));
    await server.up();
    return server;
  }

  async up(): Promise<void> {
    const args = this.args.map((arg) => (arg === 'PORT' ? String(this.port) : arg));
    const child = spawn(this.command, args, {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, PORT: String(this.port), PYTHONUNBUFFERED: '1' },
    });
    this.child = child;
    child.stdout.on('data', (chunk: Buffer) => (this.output += chunk.toString()));
    child.stderr.on(
      'data',
      (chunk: Buffer) => (this.complaints = `${this.complaints}${chunk.toString()}`.slice(-4000)),
    );
    const deadline = Date.now() + 120_000;
    while (!(await listens(this.port))) {
      if (child.exitCode !== null)
        throw new Error(`${this.command} ${args.join(' ')} ended: ${this.complaints}`);
      if (Date.now() > deadline) throw new Error(`${args.join(' ')} does not listen: ${this.complaints}`);
      await pause(50);
    }
  }

  /** SIGKILL, and away. */
  async kill(): Promise<void> {
    if (this.child.exitCode !== null || this.child.signalCode !== null) return;
    const gone = once(this.child, 'exit');
    this.child.kill('SIGKILL');
    await gone;
  }

  async killAndStart(): Promise<void> {
    await this.kill();
    await this.up();
  }

  /** SIGSTOP or SIGCONT: a server that hangs, and goes on. */
  signal(name: 'SIGSTOP' | 'SIGCONT'): void {
    this.child.kill(name);
  }

  /** What it has printed, line by line. */
  get said(): string[] {
    return this.output.split('\n').filter((line) => line !== '');
  }
}

async function listens(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1');
  try {
    await once(socket, 'connect');
    return true;
  } catch {
    // Nobody listens yet: whoever waits asks again.
    return false;
  } finally {
    socket.destroy();
  }
}
