import { types } from 'node:util';
import { isWaiting } from '../../core/time/uncounted.ts';

/**
 * Ends with the first of: what `work` gives, the signal's reason (null: nobody calls it off), the limit (milliseconds; null
 * for none), after which it throws `late`. Work that does not wait is done when this returns, and costs no timer and no signal. What goes on all
 * the same is nobody's any more.
 */
export async function inTime<T>(
  signal: AbortSignal | null,
  limitMs: number | null,
  work: (limited: { readonly signal: AbortSignal }) => T | Promise<T>,
  late = (seconds: number): Error => new Error(`gave no verdict in ${seconds} s`),
): Promise<T> {
  signal?.throwIfAborted();
  const limited = new LazySignal();
  const result = work(limited);
  if (isThere(result)) return result;
  let stop: (() => void) | undefined;
  let timer: NodeJS.Timeout | undefined;
  try {
    return await new Promise<T>((resolve, reject) => {
      // The reason comes first: what `work` makes of it says less.
      const end = (reason: unknown): void => {
        reject(reason);
        limited.abort(reason);
      };
      if (signal) {
        stop = () => end(signal.reason);
        signal.addEventListener('abort', stop, { once: true });
      }
      if (limitMs !== null) timer = afterTicks(limitMs, limited, () => end(late(limitMs / 1000)));
      Promise.resolve(result).then(resolve, reject);
    });
  } finally {
    clearInterval(timer);
    if (stop) signal?.removeEventListener('abort', stop);
  }
}

/** Ticks of a limit. */
const TICKS = 10;

/**
 * A limit in time that the work could have used: while this process is kept from running, by others' work or by the
 * machine, or while the work waits for its turn, no tick goes by.
 */
function afterTicks(limitMs: number, limited: LazySignal, late: () => void): NodeJS.Timeout {
  let ticks = 0;
  const timer = setInterval(() => {
    if (!limited.isWaiting && ++ticks === TICKS) late();
  }, limitMs / TICKS);
  return timer;
}

/** A signal that is made when it is asked for: most functions never do, and one costs more than a call of them. */
class LazySignal {
  private controller: AbortController | undefined;
  private aborted: { reason: unknown } | undefined;

  get signal(): AbortSignal {
    if (!this.controller) {
      this.controller = new AbortController();
      if (this.aborted) this.controller.abort(this.aborted.reason);
    }
    return this.controller.signal;
  }

  get isWaiting(): boolean {
    return this.controller !== undefined && isWaiting(this.controller.signal);
  }

  abort(reason: unknown): void {
    this.aborted = { reason };
    this.controller?.abort(reason);
  }
}

/** Whether a result needs no waiting for. Found out without running what users wrote: that it says so may take time. */
function isThere<T>(result: T | Promise<T>): result is T {
  if (typeof result === 'function') return false;
  return typeof result !== 'object' || result === null || !(types.isProxy(result) || 'then' in result);
}
