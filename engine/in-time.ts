import process from 'node:process';
import { createContext, Script } from 'node:vm';

/** The longest conversations take a tenth of it. */
const SECONDS = 5;
/** All tries together are shorter than the minute after which a kept event loop ends its worker. */
const TRIES = 3;

const context = createContext({});
const script = new Script('work()');

/**
 * What `work` returns. Its code comes with somebody's model: a chat template may loop without end, a tokenizer's pattern may
 * backtrack for years, and neither could be interrupted otherwise. Throws Error when it takes more than `seconds`. Where the
 * process was stopped, or got no processor, meanwhile, it is tried again with twice the time. Costs a thread: 50 µs at rest, and as long
 * as the machine takes to run one where it is busy.
 */
export function interruptedAfter<T>(work: () => T, seconds = SECONDS): T {
  for (let tries = 1, limit = seconds; ; tries++, limit *= 2) {
    const before = process.cpuUsage();
    context['work'] = work;
    try {
      return script.runInContext(context, { timeout: 1000 * limit }) as T;
    } catch (error) {
      if ((error as { code?: unknown } | null)?.code !== 'ERR_SCRIPT_EXECUTION_TIMEOUT') throw error;
      const { user, system } = process.cpuUsage(before);
      if (tries < TRIES && (user + system) / 1e6 < seconds / 2) continue;
      throw new Error(`it takes longer than ${limit} s, where others take some thousandths`, {
        cause: error,
      });
    }
  }
}
