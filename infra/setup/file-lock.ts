import { randomUUID } from 'node:crypto';
import { link, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'; // it lives, and belongs to someone else
  }
}

async function holderOf(file: string): Promise<number | undefined> {
  const text = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined;
    throw error;
  });
  return text === undefined ? undefined : Number(text);
}

/**
 * Takes the lock `file` for this process, or says who has it. A lock whose process is gone is taken over.
 * @returns `release`, or the pid of the living holder
 */
export async function tryLock(file: string): Promise<{ release: () => Promise<void> } | { heldBy: number }> {
  await mkdir(path.dirname(file), { recursive: true });
  const mine = `${file}.${process.pid}.${randomUUID()}`;
  // link() fails when the name exists, and the name appears together with its content.
  await writeFile(mine, String(process.pid));
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
      if (isAlive(holder)) return { heldBy: holder };
      // Several may find the lock stale at once: a rename succeeds for one, and what it took away is looked at again.
      const stale = `${mine}.stale`;
      await rename(file, stale).catch((error: NodeJS.ErrnoException) => {
        if (error.code !== 'ENOENT') throw error;
      });
      const taken = await holderOf(stale);
      if (taken !== undefined && taken !== holder && isAlive(taken))
        await link(stale, file).catch(() => undefined);
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
