import { availableParallelism } from 'node:os';
import { uncounted } from '../../core/time/uncounted.ts';

const waiting: (() => void)[] = [];
let running = 0;

/**
 * Does sandboxed work when it is its turn: as many at a time in a process as there are processors, in the order asked. How many
 * others ask says nothing of who waits, so the limit of a verifier or a tool does not count it.
 */
export async function inTurn<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  if (running >= availableParallelism())
    await uncounted(signal, new Promise<void>((resolve) => waiting.push(resolve)));
  else running++;
  try {
    signal.throwIfAborted();
    return await work();
  } finally {
    const next = waiting.shift();
    if (next) next();
    else running--;
  }
}
