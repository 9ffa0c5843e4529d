import { readFileSync } from 'node:fs';
import { expect } from 'vitest';
import { usageOfTree } from '../../environments/sandbox/linux/process-tree.ts';
import { until } from './run-client.ts';

/** Processes that this one has started, and those that they have, whose command line has a text in it. */
export function processesBelow(text: string): number[] {
  return usageOfTree(process.pid).pids.filter((pid) => {
    try {
      return pid !== process.pid && readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(text);
    } catch {
      return false; // It is over.
    }
  });
}

/** What may be killed in mid-call, and what its command line has that no other one has. */
export const HOLDERS = [
  ['the sandbox', '--unshare-all'],
  ['the host of environments', '--max-old-space-size'],
] as const;

/** SIGKILL to each: one that is over by now, such as the child of another, is what is wanted. */
export function killAll(pids: Iterable<number>): void {
  for (const pid of pids) {
    try {
      process.kill(pid, 'SIGKILL');
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
    }
  }
}

/**
 * What a call comes to in whose course processes are killed: it is begun, and once a process with the text `running` is
 * there, those with `killed` are ended. Repeated by whoever holds the hosts, or by whoever asks here.
 */
export async function killedInCourse<T>(
  call: (again: boolean) => Promise<T>,
  { running, killed }: { running: string; killed: string },
): Promise<T> {
  let cut = begun();
  for (let again = 0; again < 5 && (await met(running, cut)) === 'over'; again++) cut = begun();
  killAll(processesBelow(killed));
  return cut.made.catch((error: unknown) => {
    expect(error).toMatchObject({ retryable: true });
    return call(true);
  });

  function begun(): { made: Promise<T>; isOver: () => boolean } {
    let over = false;
    const made = call(false).finally(() => (over = true));
    made.catch(() => undefined);
    return { made, isOver: () => over };
  }
}

/** Whether a process of a call was met in its course, or the call was quicker than this machine. */
const met = (running: string, { isOver }: { isOver: () => boolean }): Promise<'there' | 'over'> =>
  until(
    () => Promise.resolve(processesBelow(running).length > 0 ? 'there' : isOver() ? 'over' : undefined),
    300_000,
    () => `there is no ${running}`,
  );
