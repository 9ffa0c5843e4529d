import { MessageChannel, receiveMessageOnPort, Worker } from 'node:worker_threads';
import { GradusError, messageOf } from '../../../core/errors.ts';
import { IN_CHECKOUT } from '../../../core/installation.ts';
import type { Ending } from '../contract.ts';
import type { Watched } from './watch-thread.ts';

/** Compiled it needs no loader of TypeScript. */
const THREAD = IN_CHECKOUT
  ? new URL('./watch-thread-start.mjs', import.meta.url)
  : new URL('./watch-thread.js', import.meta.url);

/** This side of the look at a sandbox. */
export interface Watch {
  /** Wall time counts from now on. */
  begun(): void;
  /** Ends the look, and says whether it has ended the sandbox. */
  stop(): Ending | undefined;
}

/** Of this process, for all of its sandboxes. */
let thread: Promise<Worker> | undefined;

/**
 * Looks at a sandbox from a thread of its own, which ends it when it has used up what it may. Resolves when the look goes
 * on whatever this process's event loop does. `lost` is called where the thread is no more. Throws what `lookout` throws.
 */
export async function watchProgram(watched: Omit<Watched, 'port'>, lost: () => void): Promise<Watch> {
  const watcher = await lookout();
  const { port1: ours, port2: port } = new MessageChannel();
  ours.once('close', lost);
  watcher.postMessage({ ...watched, port } satisfies Watched, [port]);
  return {
    begun: () => ours.postMessage('begun'),
    stop() {
      ours.off('close', lost);
      // Said before the sandbox was ended, and so before we heard of its end.
      const ending = receiveMessageOnPort(ours)?.message as Ending | undefined;
      ours.close();
      return ending;
    },
  };
}

/** The thread that looks, when it is up. Throws GradusError('infra', 'sandbox-failed', retryable) where it cannot start. */
export const lookout = (): Promise<Worker> => (thread ??= start());

function start(): Promise<Worker> {
  const starting = new Promise<Worker>((resolve, reject) => {
    const worker = new Worker(THREAD, { execArgv: [] });
    worker.once('message', () => {
      // No reason to stay for a process that has no sandbox.
      worker.unref();
      resolve(worker);
    });
    worker.on('error', (error) => {
      console.error('the thread that looks at sandboxes has ended', error);
      reject(error);
    });
    worker.once('exit', (code) => {
      forget();
      reject(new Error(`the thread that looks ended before it was up (exit ${code})`));
    });
  }).catch((cause: unknown) => {
    forget();
    throw new GradusError('infra', 'sandbox-failed', `sandboxes cannot be looked at: ${messageOf(cause)}`, {
      retryable: true,
      cause,
    });
  });
  /** The next sandbox has another one. */
  const forget = (): void => {
    if (thread === starting) thread = undefined;
  };
  return starting;
}
