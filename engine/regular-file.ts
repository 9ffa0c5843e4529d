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
    return await bytesOf(handle, size, longest);
  } finally {
    await handle.close();
  }
}

/** A file of /proc says that it has no bytes and may have no end, and others grow while they are read. */
async function bytesOf(handle: FileHandle, size: number, longest: number): Promise<Uint8Array> {
  let bytes = new Uint8Array(Math.max(size + 1, 2 ** 16));
  let length = 0;
  for (;;) {
    const { bytesRead } = await handle.read(bytes, length, bytes.length - length);
    length += bytesRead;
    if (bytesRead === 0) return bytes.slice(0, length);
    if (length > longest) throw new Error(`it has more than ${longest} bytes`);
    if (length < bytes.length) continue;
    const longer = new Uint8Array(2 * bytes.length);
    longer.set(bytes);
    bytes = longer;
  }
}
