import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createWriteStream } from 'node:fs';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import getPort from 'get-port';

/** It compiles nothing, but imports much, and the machine may be busy. */
const START_SECONDS = 900;
/** Small models have short contexts. */
const KV_CACHE_BYTES = 2 ** 28;

export interface RealVllmOptions {
  /** The environment of `npm run setup:vllm`. */
  environment: string;
  /** A folder in Hugging Face's layout. */
  model: string;
  logprobsMode: 'raw_logprobs' | 'processed_logprobs';
  logFile: string;
  dtype?: 'float32' | 'bfloat16';
  /** It computes on this one alone, so that replicas do not wait for each other's threads. Absent: on all. */
  core?: number;
}

/** The real vLLM on loopback, as docs/serving.md starts it, in a group of processes of its own. */
export class RealVllm {
  readonly url: string;
  private readonly options: RealVllmOptions;
  private child!: ChildProcess;
  /** Bytes of the log when it was started last. */
  private logged = 0;

  private constructor(port: number, options: RealVllmOptions) {
    this.url = `http://127.0.0.1:${port}`;
    this.options = options;
  }

  static async start(options: RealVllmOptions): Promise<RealVllm> {
    const server = new RealVllm(await getPort({ host: '127.0.0.1' }), options);
    await server.up();
    return server;
  }

  get pid(): number {
    return this.child.pid!;
  }

  /** What was asked of it since it was started last and answered with 200, in order, by its own log. */
  async asked(): Promise<string[]> {
    const log = (await readFile(this.options.logFile)).subarray(this.logged).toString();
    return [...log.matchAll(/"POST (\/[^ ?]*)\S* HTTP\/1\.1" 200/gu)].map(([, path]) => path!);
  }

  /** SIGKILL to all of its processes: whoever answers, and whoever computes. */
  async kill(): Promise<void> {
    if (this.child.exitCode !== null || this.child.signalCode !== null) return;
    const gone = once(this.child, 'exit');
    process.kill(-this.child.pid!, 'SIGKILL');
    await gone;
  }

  /** Starts it again on the same port after a kill; resolves when it answers. */
  async up(): Promise<void> {
    const { environment, model, logprobsMode, logFile, dtype = 'float32', core } = this.options;
    const port = new URL(this.url).port;
    const args =
      `--served-model-name m --host 127.0.0.1 --port ${port} --dtype ${dtype} --enforce-eager --block-size 32 ` +
      `--max-num-seqs 64 --kv-cache-memory-bytes ${KV_CACHE_BYTES} --enable-lora --max-loras 4 --max-lora-rank 16 --enable-scale-out ` +
      `--generation-config vllm --logprobs-mode ${logprobsMode}`;
    this.logged = (await readFile(logFile).catch(() => Buffer.alloc(0))).length;
    const log = createWriteStream(logFile, { flags: 'a' });
    this.child = spawn(
      path.join(environment, 'bin', 'python'),
      [path.join(environment, 'bin', 'vllm'), 'serve', model, ...args.split(' ')],
      {
        detached: true,
        stdio: ['ignore', 'pipe', 'pipe'],
        env: {
          ...process.env,
          PATH: `${path.join(environment, 'bin')}:${process.env['PATH']}`,
          VLLM_SERVER_DEV_MODE: '1',
          VLLM_ALLOW_RUNTIME_LORA_UPDATING: '1',
          VLLM_NO_USAGE_STATS: '1',
          ...(core !== undefined && { VLLM_CPU_OMP_THREADS_BIND: String(core) }),
          HF_HUB_OFFLINE: '1',
        },
      },
    );
    this.child.stdout!.pipe(log, { end: false });
    this.child.stderr!.pipe(log, { end: false });
    const limit = AbortSignal.timeout(START_SECONDS * 1000);
    for (;;) {
      const answered = await fetch(`${this.url}/health`).catch(() => undefined);
      if (answered?.ok) return;
      if (this.child.exitCode !== null || this.child.signalCode !== null)
        throw new Error(`vLLM ended with ${this.child.exitCode ?? this.child.signalCode}: see ${logFile}`);
      if (limit.aborted) {
        await this.kill();
        throw new Error(`vLLM does not answer ${START_SECONDS} s after its start: see ${logFile}`);
      }
      await wait(200);
    }
  }
}
