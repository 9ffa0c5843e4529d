import { readFileSync } from 'node:fs';
import { usageOfTree } from '../../environments/sandbox/linux/process-tree.ts';

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
