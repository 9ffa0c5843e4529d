import { mkdir, readdir, readFile, rename, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { byteCount } from '../../core/byte-parts.ts';
import { assertDigest } from '../digest.ts';

/** Once a process has written this part of the bound, it looks again at what others wrote. */
const SCAN_PART = 1 / 16;
const ABANDONED_MS = 3_600_000;

/**
 * Files by a name, which is a SHA-256 in hex, in a folder that all processes on a machine share. A file appears whole
 * (rename), and the newest one of a name counts. Least recently used files go when the folder passes `maxBytes`; it may
 * be over by 1/16 for every process that writes into it. What a disk does to a file is for the reader to find.
 */
export class FileCache {
  private readonly directory: string;
  private readonly maxBytes: number;
  private written = 0;
  private scanned = false;
  private scanning: Promise<void> | undefined;
  private counter = 0;

  constructor(directory: string, maxBytes: number) {
    this.directory = directory;
    this.maxBytes = maxBytes;
  }

  /** The bytes, or undefined when they are not here. */
  async read(name: string): Promise<Buffer | undefined> {
    const path = this.pathOf(name);
    let bytes: Buffer;
    try {
      bytes = await readFile(path);
    } catch (error) {
      if (isAbsent(error)) return undefined;
      throw error;
    }
    const now = new Date();
    // Another process may evict it at this moment: we have what we came for.
    await utimes(path, now, now).catch(ignoreAbsent);
    return bytes;
  }

  async remove(name: string): Promise<void> {
    await rm(this.pathOf(name), { force: true });
  }

  /** Parts that lie end to end. */
  async write(name: string, parts: readonly Uint8Array[]): Promise<void> {
    const bytes = byteCount(parts);
    if (bytes > this.maxBytes) return;
    const path = this.pathOf(name);
    const temporary = join(this.directory, 'incoming', `${name}.${process.pid}.${this.counter++}`);
    await mkdir(join(this.directory, 'incoming'), { recursive: true });
    await mkdir(join(path, '..'), { recursive: true });
    try {
      await writeFile(temporary, parts);
      await rename(temporary, path);
    } catch (error) {
      await rm(temporary, { force: true });
      throw error;
    }
    this.written += bytes;
    if (!this.scanned || this.written > this.maxBytes * SCAN_PART) await this.evict();
  }

  private pathOf(name: string): string {
    assertDigest(name);
    return join(this.directory, name.slice(0, 2), name);
  }

  private evict(): Promise<void> {
    this.scanning ??= this.scan().finally(() => (this.scanning = undefined));
    return this.scanning;
  }

  private async scan(): Promise<void> {
    this.scanned = true;
    this.written = 0;
    const files: { path: string; bytes: number; used: number }[] = [];
    for (const folder of await readdir(this.directory)) {
      for (const name of await readdir(join(this.directory, folder))) {
        const path = join(this.directory, folder, name);
        const info = await stat(path).catch(ignoreAbsent);
        if (!info) continue;
        if (folder !== 'incoming') files.push({ path, bytes: info.size, used: info.mtimeMs });
        else if (Date.now() - info.mtimeMs > ABANDONED_MS) await rm(path, { force: true });
      }
    }
    let total = files.reduce((sum, file) => sum + file.bytes, 0);
    for (const { path, bytes } of files.toSorted((a, b) => a.used - b.used)) {
      if (total <= this.maxBytes) break;
      await rm(path, { force: true });
      total -= bytes;
    }
  }
}

const isAbsent = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && error.code === 'ENOENT';

function ignoreAbsent(error: unknown): undefined {
  if (!isAbsent(error)) throw error;
}
