import { mkdir, readdir, readFile, rename, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { assertDigest, sha256OfMany } from './digest.ts';

/** Once a process has written this part of the bound, it looks again at what others wrote. */
const SCAN_PART = 1 / 16;
const ABANDONED_MS = 3_600_000;

/**
 * Files by their SHA-256 in a folder that all processes on a machine share: what one puts, another gets without
 * the network. A file appears whole (rename) and its digest is checked whenever it is read. Least recently used
 * files go when the folder passes `maxBytes`; it may be over by 1/16 for every process that writes into it.
 */
export class BlobCache {
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

  /** The bytes, or undefined when they are not here; a damaged file is thrown away. */
  async read(sha256: string): Promise<Buffer | undefined> {
    const path = this.pathOf(sha256);
    let bytes: Buffer;
    try {
      bytes = await readFile(path);
    } catch (error) {
      if (isAbsent(error)) return undefined;
      throw error;
    }
    if ((await sha256OfMany(bytes)) !== sha256) {
      await rm(path, { force: true });
      return undefined;
    }
    const now = new Date();
    // Another process may evict it at this moment: we have what we came for.
    await utimes(path, now, now).catch(ignoreAbsent);
    return bytes;
  }

  async write(sha256: string, bytes: Uint8Array): Promise<void> {
    if (bytes.length > this.maxBytes) return;
    const path = this.pathOf(sha256);
    const temporary = join(this.directory, 'incoming', `${sha256}.${process.pid}.${this.counter++}`);
    await mkdir(join(this.directory, 'incoming'), { recursive: true });
    await mkdir(join(path, '..'), { recursive: true });
    try {
      await writeFile(temporary, bytes);
      await rename(temporary, path);
    } catch (error) {
      await rm(temporary, { force: true });
      throw error;
    }
    this.written += bytes.length;
    if (!this.scanned || this.written > this.maxBytes * SCAN_PART) await this.evict();
  }

  private pathOf(sha256: string): string {
    assertDigest(sha256);
    return join(this.directory, sha256.slice(0, 2), sha256);
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
