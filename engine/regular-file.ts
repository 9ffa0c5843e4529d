import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';

/** Longest file that is read whole, bytes: the largest tokenizers have some forty million. */
const LONGEST = 2 ** 28;

/**
 * Opens a file of somebody else's folder. Pipes and devices are refused, and not waited for: they may have no end.
 * Throws Error in words, and what opening a file throws.
 */
export async function openRegularFile(file: string): Promise<{ handle: FileHandle; size: number }> {
  const handle = await open(file, constants.O_RDONLY | constants.O_NONBLOCK);
  const stats = await handle.stat();
  if (stats.isFile()) return { handle, size: stats.size };
  await handle.close();
  throw new Error('it is no regular file, but a pipe, a device or a folder');
}

/** The same, read whole. Throws Error where it is longer than `longest` bytes. */
export async function readRegularFile(file: string, longest = LONGEST): Promise<Uint8Array> {
  const { handle, size } = await openRegularFile(file);
  try {
    if (size > longest) throw new Error(`it has ${size} bytes, and may have ${longest}`);
    return new Uint8Array(await handle.readFile());
  } finally {
    await handle.close();
  }
}
