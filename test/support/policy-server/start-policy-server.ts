import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { createInterface } from 'node:readline';
import type { Json } from '../../../core/json/json.ts';
import { spawnServer } from '../spawn-server.ts';
import type { Fault } from './faults.ts';

export interface PolicyServerOptions {
  dialect: 'vllm' | 'sglang';
  /** A folder in Hugging Face's layout. */
  model: string;
  servedName?: string;
  logprobsMode?: 'raw_logprobs' | 'processed_logprobs';
  /** As vLLM 0.33, whose `/v1/completions` tells versions where it is asked to. */
  weightVersions?: boolean;
  /** Whether vLLM has `/inference/v1/generate`; default true. */
  scaleOut?: boolean;
  /** Tokens of a block of the prefix cache; default 16. */
  blockSize?: number;
  /** Default: a free one. */
  port?: number;
  /** On from the beginning. */
  faults?: readonly Fault[];
}

const MAIN = path.join(import.meta.dirname, 'main.ts');

/** A process that speaks the HTTP of vLLM or SGLang, with our own decoder behind it. */
export class PolicyServer {
  url = '';
  private child!: ChildProcess;
  private readonly options: PolicyServerOptions;

  private constructor(options: PolicyServerOptions) {
    this.options = options;
  }

  static async start(options: PolicyServerOptions): Promise<PolicyServer> {
    const server = new PolicyServer(options);
    await server.up(String(options.port ?? 0));
    return server;
  }

  get pid(): number {
    return this.child.pid!;
  }

  /** The process has ended; its exit code, null after a signal. */
  get exited(): boolean {
    return this.child.exitCode !== null || this.child.signalCode !== null;
  }

  /** Over when the process has ended by itself. */
  async ended(): Promise<number | null> {
    if (!this.exited) await once(this.child, 'exit');
    return this.child.exitCode;
  }

  /** SIGKILL. */
  async kill(): Promise<void> {
    await this.end('SIGKILL');
  }

  async stop(): Promise<void> {
    await this.end('SIGTERM');
  }

  /** Killed, and started again on the same port: with the folder's weights, version `default`, and no adapters. */
  async restart(): Promise<void> {
    await this.kill();
    await this.up(new URL(this.url).port);
  }

  /** From now on; see `FAULTS`. */
  async fault(fault: Fault): Promise<void> {
    await this.ask('POST', '/faults', { ...fault });
  }

  /** All faults off, and whatever is silent is answered. */
  async healed(): Promise<void> {
    await this.ask('DELETE', '/faults');
  }

  /** Whatever the fault `silent` holds back is answered. */
  async release(): Promise<void> {
    await this.ask('POST', '/faults/release');
  }

  /** What was asked of the server since it was started, oldest first. */
  async requests(): Promise<{ method: string; path: string; body?: Json }[]> {
    return (await this.ask('GET', '/requests')) as { method: string; path: string; body?: Json }[];
  }

  private async ask(method: string, path: string, body?: Json): Promise<unknown> {
    const response = await fetch(`${this.url}${path}`, {
      method,
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
    return response.json();
  }

  private async end(signal: NodeJS.Signals): Promise<void> {
    if (this.exited) return;
    const gone = once(this.child, 'exit');
    this.child.kill(signal);
    await gone;
  }

  private async up(port: string): Promise<void> {
    const { dialect, model, servedName, logprobsMode, weightVersions, scaleOut, blockSize, faults } =
      this.options;
    const args = [
      '--dialect',
      dialect,
      '--model',
      model,
      '--port',
      port,
      ...(servedName === undefined ? [] : ['--served-model-name', servedName]),
      ...(logprobsMode === undefined ? [] : ['--logprobs-mode', logprobsMode]),
      ...(weightVersions === true ? ['--weight-versions'] : []),
      ...(scaleOut === false ? ['--no-scale-out'] : []),
      ...(blockSize === undefined ? [] : ['--block-size', String(blockSize)]),
      ...(faults === undefined ? [] : ['--faults', JSON.stringify(faults)]),
    ];
    const child = spawnServer(MAIN, args);
    this.child = child;
    let complaints = '';
    child.stderr.on(
      'data',
      (chunk: Buffer) => (complaints = `${complaints}${chunk.toString()}`.slice(-4000)),
    );
    for await (const line of createInterface(child.stdout)) {
      this.url = `http://127.0.0.1:${(JSON.parse(line) as { port: number }).port}`;
      return;
    }
    throw new Error(`the policy server ended before it was ready: ${complaints}`);
  }
}

export const startPolicyServer = (options: PolicyServerOptions): Promise<PolicyServer> =>
  PolicyServer.start(options);
