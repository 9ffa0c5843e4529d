import { mkdir, rename, rm } from 'node:fs/promises';
import { withLock } from './file-lock.ts';

/**
 * Makes a folder of the cache where it is not there: `make` works in an empty folder beside it, and returns what is to have
 * its name. Another process that wants the same waits. What a killed one left is not trusted.
 */
export async function makeOnce(
  folder: string,
  say: (text: string) => void,
  isThere: () => boolean | Promise<boolean>,
  make: (making: string) => Promise<string>,
): Promise<void> {
  const waiting = (pid: number): void => say(`waiting for process ${pid}, which is making ${folder}`);
  await withLock(`${folder}.lock`, waiting, async () => {
    if (await isThere()) return;
    const making = `${folder}.making`;
    await rm(making, { recursive: true, force: true });
    await mkdir(making);
    try {
      const made = await make(making);
      await rm(folder, { recursive: true, force: true });
      await rename(made, folder);
    } finally {
      await rm(making, { recursive: true, force: true });
    }
  });
}
