import { timeoutSignal } from '../../../core/timeout-signal.ts';

/** Of a server that is to go on after a failure; seconds. */
const RESUMING_SECONDS = 10;

/** A server that stays paused answers nobody: it goes on also where the work has failed. */
export async function whilePaused<T>(
  { pause, resume }: Record<'pause' | 'resume', (signal: AbortSignal) => Promise<unknown>>,
  signal: AbortSignal,
  work: () => Promise<T>,
): Promise<T> {
  await pause(signal);
  let result: T;
  try {
    result = await work();
  } catch (error) {
    // What failed first is what counts, and its server is not sampled from before it has shown its weights.
    await resume(timeoutSignal(RESUMING_SECONDS * 1000)).catch(() => undefined);
    throw error;
  }
  await resume(signal);
  return result;
}
