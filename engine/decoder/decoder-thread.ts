import { Worker } from 'node:worker_threads';
import { GradusError, messageOf } from '../../core/errors.ts';
import { IN_CHECKOUT } from '../../core/installation.ts';
import type { SampleRequest, SampleResult } from '../policy.ts';
import type { LoadedModel } from './backend.ts';
import type { FromThread, ThreadSettings, ToThread } from './messages.ts';

/** Compiled it needs no loader of TypeScript. */
const THREAD = IN_CHECKOUT
  ? new URL('./thread-start.mjs', import.meta.url)
  : new URL('./thread.js', import.meta.url);

interface Waiting {
  resolve(result: SampleResult | undefined): void;
  reject(reason: unknown): void;
}

/** This side of a decoder's thread. When the thread ends before it is closed, all who wait are told. */
export class DecoderThread {
  private readonly worker: Worker;
  private readonly waiting = new Map<number, Waiting>();
  private readonly ended: Promise<void>;
  private lastId = 0;
  private failure: GradusError | undefined;

  /** `onCrash` is called once, after those who waited have been rejected. */
  constructor(settings: ThreadSettings, onCrash: (failure: GradusError) => void) {
    this.worker = new Worker(THREAD, {
      workerData: settings,
      execArgv: [],
    });
    // An idle decoder keeps no process alive; a request in flight does, see `call`.
    this.worker.unref();
    this.worker.on('message', (message: FromThread) => this.settle(message));
    let cause: unknown;
    this.worker.on('error', (error: unknown) => (cause = error));
    this.ended = new Promise((resolve) => {
      this.worker.once('exit', () => {
        this.end(
          new GradusError(
            'policy',
            'decoder-crashed',
            `The decoder's thread ended${cause === undefined ? '' : ` (${messageOf(cause)})`}. Load the weights again and repeat the request.`,
            { retryable: true, cause },
          ),
          onCrash,
        );
        resolve();
      });
    });
  }

  /** Frees the weights when what was requested before is done. */
  async unload(): Promise<void> {
    await this.call((id) => ({ type: 'unload', id }));
  }

  async load(model: LoadedModel): Promise<void> {
    await this.call((id) => ({ type: 'load', id, ...model }));
  }

  async sample(request: SampleRequest, signal?: AbortSignal): Promise<SampleResult> {
    return (await this.call((id) => ({ type: 'sample', id, request }), signal))!;
  }

  release(session: string): void {
    this.post({ type: 'release', session });
  }

  /** Rejects what is in flight with `reason` and ends the thread once the step that is running is over. */
  async close(reason: GradusError): Promise<void> {
    this.end(reason, () => undefined);
    this.worker.ref();
    this.post({ type: 'close' });
    await this.ended;
  }

  private call(order: (id: number) => ToThread, signal?: AbortSignal): Promise<SampleResult | undefined> {
    return new Promise((resolve, reject) => {
      if (this.failure !== undefined) {
        reject(this.failure);
        return;
      }
      const id = ++this.lastId;
      const onAbort = () => {
        this.post({ type: 'abort', id });
        this.take(id)?.reject(signal?.reason);
      };
      const done = () => signal?.removeEventListener('abort', onAbort);
      this.waiting.set(id, {
        resolve: (result) => (done(), resolve(result)),
        reject: (reason) => (done(), reject(reason)),
      });
      signal?.addEventListener('abort', onAbort);
      this.worker.ref();
      this.post(order(id));
    });
  }

  private settle(message: FromThread): void {
    const waiting = this.take(message.id);
    if (message.type === 'done') waiting?.resolve(undefined);
    else if (message.type === 'sampled') waiting?.resolve(message.result);
    else {
      const { boundary, type, message: text, retryable } = message.failure;
      waiting?.reject(new GradusError(boundary, type, text, { retryable }));
    }
  }

  private take(id: number): Waiting | undefined {
    const waiting = this.waiting.get(id);
    this.waiting.delete(id);
    // An answer may come when the end is awaited, which nothing else keeps the process for.
    if (this.waiting.size === 0 && this.failure === undefined) this.worker.unref();
    return waiting;
  }

  private end(failure: GradusError, onCrash: (failure: GradusError) => void): void {
    if (this.failure !== undefined) return;
    this.failure = failure;
    for (const id of this.waiting.keys()) this.take(id)?.reject(failure);
    onCrash(failure);
  }

  private post(message: ToThread): void {
    // A Worker is no window: there is no origin to name.
    // oxlint-disable-next-line unicorn/require-post-message-target-origin
    this.worker.postMessage(message);
  }
}
