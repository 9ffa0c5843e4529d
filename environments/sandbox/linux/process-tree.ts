import { readdirSync, readFileSync, readlinkSync, statfsSync, statSync } from 'node:fs';

/** What a process and all that it started use at the moment. */
export interface TreeUsage {
  pids: number[];
  /** Memory that no file on a disk backs, page tables and swap: an upper bound, for shared pages count in each process. */
  memoryBytes: number;
  /** User and system time, of processes that are over, too, as far as anybody waited for them. */
  cpuSeconds: number;
  /** Open descriptors; 0 where another user's may not be looked at. */
  descriptors: number;
}

/** USER_HZ: 100 on every architecture that Node runs on. */
const TICKS_PER_SECOND = 100;

/**
 * Reads Linux's /proc synchronously: some 0.1 ms a process. Processes that end meanwhile are left out. Where a pid namespace
 * is below `root`, orphans are children of its first process, so nothing gets out of the tree.
 */
export function usageOfTree(root: number): TreeUsage {
  const usage: TreeUsage = { pids: [], memoryBytes: 0, cpuSeconds: 0, descriptors: 0 };
  const waiting = [root];
  for (let pid = waiting.pop(); pid !== undefined; pid = waiting.pop()) {
    const status = readIfThere(`/proc/${pid}/status`);
    const stat = readIfThere(`/proc/${pid}/stat`);
    if (status === undefined || stat === undefined) continue;
    usage.pids.push(pid);
    for (const [, kilobytes] of status.matchAll(/^(?:RssAnon|RssShmem|VmSwap|VmPTE):\s+(\d+) kB$/gm)) {
      usage.memoryBytes += Number(kilobytes) * 1024;
    }
    // The name, second of the fields, may hold anything; utime, stime, cutime and cstime are fields 14 to 17.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    usage.cpuSeconds +=
      fields.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks), 0) / TICKS_PER_SECOND;
    usage.descriptors += descriptorsOf(pid).length;
    waiting.push(...childrenOf(pid));
  }
  return usage;
}

/**
 * The same memory with shared pages counted once, which takes milliseconds a 100 MB; undefined where another user's
 * processes may not be looked at.
 */
export function proportionalMemory(pids: readonly number[]): number | undefined {
  let bytes = 0;
  for (const pid of pids) {
    try {
      const rollup = readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8');
      for (const [, kilobytes] of rollup.matchAll(/^(?:Pss_Anon|Pss_Shmem|SwapPss):\s+(\d+) kB$/gm)) {
        bytes += Number(kilobytes) * 1024;
      }
      const tables = /^VmPTE:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
      bytes += Number(tables ?? 0) * 1024;
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code === 'EACCES' || code === 'EPERM') return undefined;
      if (code !== 'ENOENT' && code !== 'ESRCH') throw error;
    }
  }
  return bytes;
}

/**
 * What files in memory (memfd) hold that one of the processes has open, bytes: a kernel in user space (gVisor) keeps its
 * programs' memory there, mapped or not. 0 where another user's descriptors may not be looked at.
 */
export function memoryFiles(pids: readonly number[]): number {
  const held = new Map<number, number>();
  for (const pid of pids) {
    for (const file of descriptorsOf(pid)) {
      try {
        if (!readlinkSync(file).startsWith('/memfd:')) continue;
        const { ino, blocks } = statSync(file);
        held.set(ino, blocks * 512);
      } catch (error) {
        if (!isGoneOrForbidden(error)) throw error;
      }
    }
  }
  return [...held.values()].reduce((sum, bytes) => sum + bytes, 0);
}

/**
 * Files, folders and links in file systems of the sandbox; 0 where its root may not be looked at, and where it has ours
 * because its files are in a kernel of its own (gVisor).
 */
export function filesIn(root: number, folders: readonly string[]): number {
  try {
    const [its, ours] = [statSync(`/proc/${root}/root/`), statSync('/')];
    if (its.dev === ours.dev && its.ino === ours.ino) return 0;
    return folders
      .map((folder) => statfsSync(`/proc/${root}/root${folder}`))
      .reduce((sum, { files, ffree }) => sum + files - ffree, 0);
  } catch (error) {
    if (isGoneOrForbidden(error)) return 0;
    throw error;
  }
}

function descriptorsOf(pid: number): string[] {
  const folder = `/proc/${pid}/fd`;
  try {
    return readdirSync(folder).map((name) => `${folder}/${name}`);
  } catch (error) {
    if (isGoneOrForbidden(error)) return [];
    throw error;
  }
}

function childrenOf(pid: number): number[] {
  let threads: string[];
  try {
    threads = readdirSync(`/proc/${pid}/task`);
  } catch (error) {
    if (isGoneOrForbidden(error)) return [];
    throw error;
  }
  return threads.flatMap((thread) =>
    (readIfThere(`/proc/${pid}/task/${thread}/children`) ?? '').split(' ').filter(Boolean).map(Number),
  );
}

const isGoneOrForbidden = (error: unknown): boolean =>
  ['ENOENT', 'ESRCH', 'EACCES', 'EPERM'].includes((error as NodeJS.ErrnoException).code ?? '');

/** A process may end at any moment: then its files are not there, or cannot be read any more. */
function readIfThere(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ESRCH') return undefined;
    throw error;
  }
}
