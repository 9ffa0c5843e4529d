import { sha256OfMany } from '../digest.ts';
import { FileCache } from './file-cache.ts';

/**
 * Files by their own SHA-256 in a folder that all processes on a machine share: what one puts, another gets without
 * the network. The digest is checked whenever a file is read.
 */
export class BlobCache {
  private readonly files: FileCache;

  constructor(directory: string, maxBytes: number) {
    this.files = new FileCache(directory, maxBytes);
  }

  /** The bytes, or undefined when they are not here; a damaged file is thrown away. */
  async read(sha256: string): Promise<Buffer | undefined> {
    const bytes = await this.files.read(sha256);
    if (bytes === undefined || (await sha256OfMany(bytes)) === sha256) return bytes;
    await this.files.remove(sha256);
    return undefined;
  }

  /** Bytes of that digest, in parts that lie end to end. */
  write(sha256: string, parts: readonly Uint8Array[]): Promise<void> {
    return this.files.write(sha256, parts);
  }
}
