import type { Readable } from 'node:stream';
import { OUTPUT_PATIENCE } from '../contract.ts';

/** Keeps the first `limit` bytes of several streams together, and reads on. */
export class ProgramOutput {
  readonly #limit: number;
  readonly #onFlood: () => void;
  #seen = 0;
  #kept = 0;

  /** `onFlood` is called once, when there has been `OUTPUT_PATIENCE` times as much as is kept. */
  constructor(limit: number, onFlood: () => void) {
    this.#limit = limit;
    this.#onFlood = onFlood;
  }

  /** Begins to read; the function returned says what was kept of this stream. */
  read(stream: Readable): () => Buffer {
    const { add, kept } = this.keep();
    stream.on('data', add);
    return kept;
  }

  /** For a stream that comes by calls. */
  keep(): { add: (chunk: Buffer) => void; kept: () => Buffer } {
    const chunks: Buffer[] = [];
    const add = (chunk: Buffer): void => {
      const before = this.#seen;
      this.#seen += chunk.length;
      const room = this.#limit - this.#kept;
      if (room > 0) {
        // A copy, so that a small piece does not hold the large buffer that it was read into.
        const piece = Buffer.from(chunk.subarray(0, room));
        chunks.push(piece);
        this.#kept += piece.length;
      }
      const patience = this.#limit * OUTPUT_PATIENCE;
      if (before <= patience && this.#seen > patience) this.#onFlood();
    };
    return { add, kept: () => Buffer.concat(chunks) };
  }

  get cut(): boolean {
    return this.#seen > this.#limit;
  }
}
