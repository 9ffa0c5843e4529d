import { GradusError } from '../../core/errors.ts';
import { logTail, untilPredecessorIsGone } from './server-process.ts';

const ATTEMPTS = 4;

/**
 * Between choosing a port and listening on it another process may take it: then other ports are chosen. A port that a
 * person asked for is checked where it is chosen, so the second attempt says that it is taken.
 */
export async function retryOtherPorts<T>(
  logFile: string,
  start: (attempt: number) => Promise<T>,
): Promise<T> {
  await untilPredecessorIsGone(logFile); // it may still hold the port that is wanted again
  for (let attempt = 0; ; attempt++) {
    try {
      return await start(attempt);
    } catch (error) {
      const lost = error instanceof GradusError && error.type === 'server-start';
      if (!lost || attempt + 1 >= ATTEMPTS || !/address already in use/i.test(await logTail(logFile)))
        throw error;
    }
  }
}
