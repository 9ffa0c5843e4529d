import { setTimeout as delay } from 'node:timers/promises';
import { GradusError } from '../../core/errors.ts';

export interface Attempts {
  /** In all. */
  attempts: number;
  /** Pause before the second, milliseconds; doubled each time. */
  firstPauseMs: number;
  longestPauseMs?: number;
  signal: AbortSignal;
  /** Told of each attempt that failed, by its number. */
  onFailure?: (error: unknown, attempt: number) => void;
}

/**
 * What the first attempt that does not fail gives. Another one is made where the error says that it may help. Throws the
 * error of the last one, and the signal's reason.
 */
export async function inAttempts<T>(
  work: (attempt: number) => Promise<T>,
  { attempts, firstPauseMs, longestPauseMs = Infinity, signal, onFailure }: Attempts,
): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await work(attempt);
    } catch (error) {
      signal.throwIfAborted();
      onFailure?.(error, attempt);
      if (attempt >= attempts || !(error instanceof GradusError && error.retryable)) throw error;
      const pause = Math.min(longestPauseMs, firstPauseMs * 2 ** (attempt - 1));
      // Only the signal ends it early.
      await delay(pause, undefined, { signal }).catch(() => signal.throwIfAborted());
    }
  }
}
