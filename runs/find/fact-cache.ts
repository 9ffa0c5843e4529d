import path from 'node:path';
import { cacheRoot } from '../../infra/cache-dir.ts';
import { messageOf } from '../../core/errors.ts';
import { sha256Hex, sha256OfMany } from '../../store/digest.ts';
import { FileCache } from '../../store/objects/file-cache.ts';

/** Facts of half a million episodes are some three hundred megabytes. */
const MAX_BYTES = 2 ** 30;
const DIGEST_BYTES = 32;

/**
 * What was made of objects of a store, so that it need not be made again: files by what they are of, on the local disk,
 * which all processes share. Nothing is lost with a file. One that a disk has damaged counts as absent, and a disk that
 * cannot be written to costs time only, which is said once.
 */
export class FactCache {
  private readonly files: FileCache;
  private readonly warned = new Set<string>();

  constructor(directory: string = path.join(cacheRoot(), 'observed'), maxBytes: number = MAX_BYTES) {
    this.files = new FileCache(directory, maxBytes);
  }

  /** What was last written for the same `of`; undefined where there is nothing whole. */
  async read(of: readonly unknown[]): Promise<Uint8Array | undefined> {
    const name = nameOf(of);
    const file = await this.trying('read', () => this.files.read(name));
    if (file === undefined) return undefined;
    const content = file.subarray(DIGEST_BYTES);
    if (file.length >= DIGEST_BYTES && (await digestOf(content)).equals(file.subarray(0, DIGEST_BYTES)))
      return content;
    await this.trying('mended', () => this.files.remove(name));
    return undefined;
  }

  async write(of: readonly unknown[], content: Uint8Array): Promise<void> {
    const parts = [await digestOf(content), content];
    await this.trying('written', () => this.files.write(nameOf(of), parts));
  }

  private async trying<T>(what: string, operation: () => Promise<T>): Promise<T | undefined> {
    try {
      return await operation();
    } catch (error) {
      if (!this.warned.has(what)) {
        this.warned.add(what);
        const message = `the local cache of facts could not be ${what}: ${messageOf(error)}`;
        process.emitWarning(message, { code: 'GRADUS_CACHE' });
      }
      return undefined;
    }
  }
}

const digestOf = async (bytes: Uint8Array): Promise<Buffer> => Buffer.from(await sha256OfMany(bytes), 'hex');

const nameOf = (of: readonly unknown[]): string => sha256Hex(new TextEncoder().encode(JSON.stringify(of)));
