import { readFileSync } from 'node:fs';
import { usageOfTree } from '../environments/sandbox/linux/process-tree.ts';

// What the processes use that one has started, directly or not, and that still run. Linux only; 0 elsewhere.

/** Without the one that they descend from. */
const descendants = (of = process.pid): number[] => usageOfTree(of).pids.filter((pid) => pid !== of);

/**
 * Most memory (resident set) that each of them ever held, in sum, bytes: at least what all held at once, since their
 * peaks need not fall together, and what they share is counted for each.
 */
export const peakBytesOfDescendants = (): number =>
  sum(descendants().map((pid) => processBytes(pid, 'VmHWM')));

/** The same of what each holds now. */
export const bytesOfDescendants = (): number => sum(descendants().map((pid) => processBytes(pid, 'VmRSS')));

/** Of a process and each of them, bytes: of pages that several share, to each its part (PSS), so that a sum counts them once. */
export const shareBytesOfDescendants = (of: number): number[] =>
  usageOfTree(of)
    .pids.map((pid) => processBytes(pid, 'Pss', 'smaps_rollup'))
    .filter((share) => share > 0);

/** Processor time of this process and of them so far, with all threads, milliseconds: what work takes on a busy machine, too. */
export function processorMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000 + 1000 * sum(descendants().map(processorSeconds));
}

function processorSeconds(pid: number): number {
  // What follows the name of the program, which is in brackets and may hold anything; in hundredths of a second.
  const fields = textOf(`/proc/${pid}/stat`).split(') ').at(-1)!.split(' ');
  return (Number(fields[11] ?? 0) + Number(fields[12] ?? 0)) / 100;
}

export interface MemoryPeaks {
  /** Most that processes which do the same ever held, bytes; of several in turn, the largest. */
  byWork: Map<string, number>;
  /** Of all together at one moment, of those looked at. */
  together: number;
}

/** Watches all descendants, by `workOf` their command lines (undefined: it does not matter), until `stop`. */
export function watchMemory(workOf: (commandLine: string[]) => string | undefined) {
  const peaks: MemoryPeaks = { byWork: new Map(), together: 0 };
  const timer = setInterval(() => {
    const pids = descendants();
    peaks.together = Math.max(peaks.together, sum(pids.map((pid) => processBytes(pid, 'VmRSS'))));
    for (const pid of pids) {
      const work = workOf(textOf(`/proc/${pid}/cmdline`).split('\0').filter(Boolean));
      if (work === undefined) continue;
      peaks.byWork.set(work, Math.max(peaks.byWork.get(work) ?? 0, processBytes(pid, 'VmHWM')));
    }
  }, 250);
  return {
    stop: (): MemoryPeaks => {
      clearInterval(timer);
      return peaks;
    },
  };
}

export const processBytes = (pid: number, key: string, file = 'status'): number =>
  1024 * Number(new RegExp(`^${key}:\\s+(\\d+) kB`, 'm').exec(textOf(`/proc/${pid}/${file}`))?.[1] ?? 0);

export const sum = (values: readonly number[]): number => values.reduce((a, b) => a + b, 0);

/** Empty for a process that has just ended. */
function textOf(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    if (['ENOENT', 'ESRCH'].includes((error as NodeJS.ErrnoException).code ?? '')) return '';
    throw error;
  }
}
