import { readdir, readFile } from 'node:fs/promises';

/** Most memory, in megabytes, that the processes of a machine's installation held. */
export interface MemoryPeaks {
  /** By what the process does; of several in turn, the largest. */
  byProcess: Map<string, number>;
  /** Of all together at one moment, of those looked at. */
  together: number;
}

const EVERY_MS = 250;
/** What is shared by several counts for each, so a sum is rather too large. */
const RESIDENT = /^VmRSS:\s+(\d+) kB/m;
const PEAK = /^VmHWM:\s+(\d+) kB/m;

/** Watches all processes that descend from this one, itself left out, until `stop`. Linux only. */
export function watchMemory(): { stop(): Promise<MemoryPeaks> } {
  const peaks: MemoryPeaks = { byProcess: new Map(), together: 0 };
  let looking = Promise.resolve();
  const timer = setInterval(() => {
    looking = looking.then(() => look(peaks));
  }, EVERY_MS);
  return {
    stop: async () => {
      clearInterval(timer);
      await looking;
      return peaks;
    },
  };
}

async function look(peaks: MemoryPeaks): Promise<void> {
  const parents = new Map<number, number>();
  const statuses = new Map<number, string>();
  for (const name of await readdir('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    const status = await textOf(`/proc/${name}/status`);
    parents.set(Number(name), Number(/^PPid:\s+(\d+)/m.exec(status)?.[1] ?? 0));
    statuses.set(Number(name), status);
  }
  let together = 0;
  for (const [pid, status] of statuses) {
    let above = parents.get(pid);
    while (above !== undefined && above !== process.pid) above = parents.get(above);
    if (above === undefined) continue;
    const megabytes = (pattern: RegExp) => Number(pattern.exec(status)?.[1] ?? 0) / 1024;
    together += megabytes(RESIDENT);
    const what = whatItDoes(await textOf(`/proc/${pid}/cmdline`));
    if (what === undefined) continue;
    peaks.byProcess.set(what, Math.max(peaks.byProcess.get(what) ?? 0, megabytes(PEAK)));
  }
  peaks.together = Math.max(peaks.together, together);
}

/** Undefined for what does not matter here. */
function whatItDoes(commandLine: string): string | undefined {
  const words = commandLine.split('\0').filter((word) => word !== '');
  const main = words.findIndex((word) => word.endsWith('workers/main.ts'));
  if (main >= 0) return `${words[main + 1]} worker`;
  if (words.some((word) => word.endsWith('learner/process.ts'))) return "the learner's own process";
  return /temporal-server|versitygw/.exec(words[0] ?? '')?.[0];
}

/** Empty for a process that has just ended. */
const textOf = (file: string): Promise<string> =>
  readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT' || error.code === 'ESRCH') return '';
    throw error;
  });
