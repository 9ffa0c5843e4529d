/**
 * Ends with the first of: what `work` gives, the signal, the limit (milliseconds; null for none), after which it throws
 * `late`. What goes on all the same is nobody's any more.
 */
export async function inTime<T>(
  signal: AbortSignal,
  limitMs: number | null,
  work: (signal: AbortSignal) => T | Promise<T>,
  late = (seconds: number): Error => new Error(`gave no verdict in ${seconds} s`),
): Promise<T> {
  const controller = new AbortController();
  const stop = (): void => controller.abort(signal.reason);
  signal.addEventListener('abort', stop, { once: true });
  const timer =
    limitMs === null ? undefined : setTimeout(() => controller.abort(late(limitMs / 1000)), limitMs);
  try {
    signal.throwIfAborted();
    return await new Promise<T>((resolve, reject) => {
      controller.signal.addEventListener('abort', () => reject(controller.signal.reason as Error));
      Promise.resolve()
        .then(() => work(controller.signal))
        .then(resolve, reject);
    });
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', stop);
  }
}
