import { closeSync, mkdtempSync, openSync, rmdirSync, unlinkSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

/** Bytes that child processes can read from a descriptor; no name leads to them, and they go with this process. */
export class TemporaryBytes {
  readonly #descriptor: number;

  constructor(bytes: Uint8Array | string) {
    const folder = mkdtempSync(path.join(tmpdir(), 'gradus-sandbox-'));
    const file = path.join(folder, 'bytes');
    try {
      this.#descriptor = openSync(file, 'wx+', 0o600);
      const content = Buffer.from(bytes);
      for (let at = 0; at < content.length;) at += writeSync(this.#descriptor, content, at);
      unlinkSync(file);
    } finally {
      rmdirSync(folder);
    }
  }

  /** A new descriptor that begins at the first byte; whoever asks closes it. */
  open(): number {
    return openSync(`/proc/self/fd/${this.#descriptor}`, 'r');
  }

  close(): void {
    closeSync(this.#descriptor);
  }
}
