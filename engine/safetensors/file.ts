import type { FileHandle } from 'node:fs/promises';
import { GradusError } from '../../core/errors.ts';
import { openRegularFile } from '../regular-file.ts';
import { decode } from './dtypes.ts';
import { corrupt, headerLength, parseHeader } from './header.ts';
import type { SafetensorsHeader, TensorEntry } from './header.ts';
import type { StoredTensor } from './safetensors.ts';

/** A safetensors file of which only the header is read; tensors are read when they are asked for. */
export class SafetensorsFile {
  readonly header: SafetensorsHeader;
  private readonly handle: FileHandle;
  private readonly dataStart: number;
  private readonly byName: ReadonlyMap<string, TensorEntry>;

  private constructor(handle: FileHandle, header: SafetensorsHeader, dataStart: number) {
    this.handle = handle;
    this.header = header;
    this.dataStart = dataStart;
    this.byName = new Map(header.entries.map((entry) => [entry.name, entry]));
  }

  /** Throws what `parseHeader` throws, with the file's name, and what `openRegularFile` throws. */
  static async open(path: string): Promise<SafetensorsFile> {
    const { handle, size } = await openRegularFile(path);
    try {
      const length = headerLength(await readAt(handle, 0, Math.min(8, size)), size);
      const header = parseHeader(await readAt(handle, 8, length), size - 8 - length);
      return new SafetensorsFile(handle, header, 8 + length);
    } catch (error) {
      await handle.close();
      if (!(error instanceof GradusError)) throw error;
      throw new GradusError(error.boundary, error.type, `${path}: ${error.message}`, { cause: error });
    }
  }

  get names(): string[] {
    return [...this.byName.keys()];
  }

  has(name: string): boolean {
    return this.byName.has(name);
  }

  /** What the header says of a tensor; undefined where there is none. */
  entry(name: string): TensorEntry | undefined {
    return this.byName.get(name);
  }

  /** Throws RangeError for a tensor that is not there. */
  async read(name: string): Promise<StoredTensor> {
    const entry = this.byName.get(name);
    if (entry === undefined) throw new RangeError(`no tensor ${name}`);
    const bytes = await readAt(this.handle, this.dataStart + entry.begin, entry.end - entry.begin);
    return { shape: entry.shape, data: decode(bytes, entry.dtype) };
  }

  close(): Promise<void> {
    return this.handle.close();
  }
}

async function readAt(handle: FileHandle, position: number, length: number): Promise<Uint8Array> {
  const bytes = new Uint8Array(length);
  let done = 0;
  while (done < length) {
    const { bytesRead } = await handle.read(bytes, done, length - done, position + done);
    if (bytesRead === 0) throw corrupt(`it ends ${length - done} bytes early`);
    done += bytesRead;
  }
  return bytes;
}
