import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { link, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

/**
 * When a process started, in the kernel's ticks since boot: with the pid it names a process, since pids are used again.
 * @returns "" where the system does not tell, undefined for a process that is gone, or dead and not yet reaped
 */
function startTime(pid: number): string | undefined {
  if (process.platform !== 'linux') return '';
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    // The name, in parentheses, may hold anything; after it come the state and, as the 20th field, the start time.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return fields[0] === 'Z' || fields[0] === 'X' ? undefined : fields[19];
  } catch {
    return undefined; // no such process
  }
}

export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
  } catch (error) {
    // EPERM: it lives, and belongs to someone else.
    if ((error as NodeJS.ErrnoException).code !== 'EPERM') return false;
  }
  return startTime(pid) !== undefined;
}

interface Holder {
  pid: number;
  started: string;
}

function parseHolder(text: string): Holder {
  const [pid, started] = text.trim().split(' ');
  return { pid: Number(pid), started: started ?? '' };
}

function holds({ pid, started }: Holder): boolean {
  return pid > 0 && isAlive(pid) && startTime(pid) === started;
}

async function holderOf(file: string): Promise<Holder | undefined> {
  const text = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined;
    throw error;
  });
  return text === undefined ? undefined : parseHolder(text);
}

/** The pid of the living process that has the lock `file`, if any. */
export async function lockHolder(file: string): Promise<number | undefined> {
  const holder = await holderOf(file);
  return holder !== undefined && holds(holder) ? holder.pid : undefined;
}

/**
 * Takes the lock `file` for this process, or says who has it. A lock whose process is gone is taken over.
 * @returns `release`, or the pid of the living holder
 */
export async function tryLock(file: string): Promise<{ release: () => Promise<void> } | { heldBy: number }> {
  await mkdir(path.dirname(file), { recursive: true });
  const mine = `${file}.${process.pid}.${randomUUID()}`;
  // link() fails when the name exists, and the name appears together with its content.
  await writeFile(mine, `${process.pid} ${startTime(process.pid) ?? ''}`);
  try {
    for (;;) {
      try {
        await link(mine, file);
        return { release: () => rm(file, { force: true }) };
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
      }
      const holder = await holderOf(file);
      if (holder === undefined) continue;
      if (holds(holder)) return { heldBy: holder.pid };
      // Several may find the lock stale at once: a rename succeeds for one, and what it took away is looked at again.
      const stale = `${mine}.stale`;
      await rename(file, stale).catch((error: NodeJS.ErrnoException) => {
        if (error.code !== 'ENOENT') throw error;
      });
      const taken = await holderOf(stale);
      if (taken !== undefined && holds(taken)) await link(stale, file);
      await rm(stale, { force: true });
    }
  } finally {
    await rm(mine, { force: true });
  }
}

/** Runs `work` under the lock; waits for another process to finish, telling `onWait` once whom it waits for. */
export async function withLock<T>(
  file: string,
  onWait: (holder: number) => void,
  work: () => Promise<T>,
): Promise<T> {
  for (let waited = false; ; waited = true) {
    const lock = await tryLock(file);
    if ('release' in lock) {
      try {
        return await work();
      } finally {
        await lock.release();
      }
    }
    if (!waited) onWait(lock.heldBy);
    await delay(250);
  }
}
