/** How many waits are under way, by the signal of the work that waits. */
const waits = new WeakMap<AbortSignal, number>();

/**
 * Waits for somebody else's work, or for a turn, on behalf of work that has this signal. A limit of its time does not count
 * that: it could have done nothing meanwhile. What is waited for must have a limit of its own.
 */
export async function uncounted<T>(signal: AbortSignal, wait: Promise<T>): Promise<T> {
  waits.set(signal, (waits.get(signal) ?? 0) + 1);
  try {
    return await wait;
  } finally {
    waits.set(signal, waits.get(signal)! - 1);
  }
}

/** Whether work that has this signal waits, so that none of its time is used. */
export const isWaiting = (signal: AbortSignal): boolean => (waits.get(signal) ?? 0) > 0;
