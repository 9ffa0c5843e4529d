import { mkdir, readdir, rename, rm } from 'node:fs/promises';
import { GradusError } from '../core/errors.ts';

/**
 * Has a folder written beside the target and renames it at the end, so that a folder that is there is whole.
 * Throws GradusError('store', 'target-exists'), and what `write` throws.
 */
export async function writeNewFolder(
  target: string,
  write: (folder: string) => Promise<void>,
): Promise<void> {
  const there = await readdir(target).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return [];
    throw notEmpty(target);
  });
  if (there.length > 0) throw notEmpty(target);
  const partial = `${target}.partial-${process.pid}`;
  await mkdir(partial, { recursive: true });
  try {
    await write(partial);
    await rm(target, { recursive: true, force: true });
    await rename(partial, target);
  } finally {
    await rm(partial, { recursive: true, force: true });
  }
}

const notEmpty = (target: string): GradusError =>
  new GradusError(
    'store',
    'target-exists',
    `${target} is there and not empty: name another folder with --to`,
  );
