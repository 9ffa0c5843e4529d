import { Worker } from 'node:worker_threads';
import { GradusError } from '../../../core/errors.ts';
import { checkCommand, commandLimits, refuseCommand } from '../command.ts';
import { OUTPUT_PATIENCE } from '../contract.ts';
import type { SandboxBackend, Command, Ending, Limits, Ran, Running, Sandbox } from '../contract.ts';

/** What the thread says: a piece of output, or how the program ended. */
type Message = { fd: 1 | 2; data: Uint8Array } | { exit: number };

/** For JavaScript's own objects beside the memory of the module. */
const HEAP_MEGABYTES = 64;

/**
 * A program of one language in WebAssembly, in a thread of ours: it can compute and print. There are no files, no processes
 * and nothing to mount; commands that ask for such are refused.
 */
export abstract class ThreadSandbox implements Sandbox {
  abstract readonly name: SandboxBackend;
  readonly talks = false;
  protected abstract readonly thread: URL;

  /** What the thread is given, or refuses the command. */
  protected abstract dataFor(command: Command, limits: Limits): Promise<Record<string, unknown>>;

  async run(command: Command): Promise<Ran> {
    checkCommand(command);
    const limits = commandLimits(command);
    if (
      command.files?.length ||
      command.collect?.length ||
      command.mounts?.length ||
      command.links?.length ||
      command.cwd
    ) {
      refuseCommand(
        `the sandbox ${this.name} has no files: give the program as an argument and its input as stdin`,
      );
    }
    const data = await this.dataFor(command, limits);
    command.signal?.throwIfAborted();
    const started = performance.now();
    const worker = new Worker(this.thread, {
      workerData: { ...data, stdin: Buffer.from(command.stdin ?? '') },
      env: {},
      execArgv: [],
      resourceLimits: { maxOldGenerationSizeMb: HEAP_MEGABYTES },
    });
    const stage = await followThread(worker, limits, command.signal);
    command.signal?.throwIfAborted();
    return { ...stage, files: new Map(), seconds: (performance.now() - started) / 1000 };
  }

  start(): Promise<Running> {
    return Promise.reject(
      new GradusError(
        'environment',
        'sandbox-command',
        `the sandbox ${this.name} runs programs to their end only`,
      ),
    );
  }
}

async function followThread(
  worker: Worker,
  limits: Limits,
  signal: AbortSignal | undefined,
): Promise<Pick<Ran, 'exit' | 'signal' | 'stdout' | 'stderr' | 'cut' | 'ended'>> {
  const kept: Record<1 | 2, Uint8Array[]> = { 1: [], 2: [] };
  let [seen, room] = [0, limits.outputBytes];
  let ended: Ending | undefined;
  let exit: number | null = null;
  const end = (reason: Ending): void => {
    if (ended !== undefined) return;
    ended = reason;
    void worker.terminate();
  };
  const clock = setTimeout(() => end('wall-time'), limits.wallSeconds * 1000);
  // One thread: what it took of the processor is at most what it took of time.
  const processor = setTimeout(() => end('cpu-time'), limits.cpuSeconds * 1000);
  const onAbort = (): void => end('killed');
  signal?.addEventListener('abort', onAbort);
  worker.on('message', (message: Message) => {
    if ('exit' in message) {
      exit = message.exit;
      return end('exit');
    }
    const piece = message.data.slice(0, room);
    kept[message.fd].push(piece);
    room -= piece.length;
    seen += message.data.length;
    if (seen > limits.outputBytes * OUTPUT_PATIENCE) end('output');
  });
  worker.on('error', (error) => {
    ended ??= (error as NodeJS.ErrnoException).code === 'ERR_WORKER_OUT_OF_MEMORY' ? 'memory' : 'killed';
  });
  await new Promise((resolve) => worker.once('exit', resolve));
  clearTimeout(clock);
  clearTimeout(processor);
  signal?.removeEventListener('abort', onAbort);
  return {
    exit,
    signal: null,
    ended: ended ?? 'killed',
    stdout: Buffer.concat(kept[1]).toString(),
    stderr: Buffer.concat(kept[2]).toString(),
    cut: seen > limits.outputBytes,
  };
}
