import { closeSync, ftruncateSync, mkdtempSync, openSync, read, rmSync, write } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { Deserializer, Serializer } from 'node:v8';

/**
 * A file without a name that two processes hold open, for what is too large for the channel between them: a state of
 * 360 MB passes through it in a third of the time. It is gone when both have ended, however they ended.
 */
export function openUnnamedFile(): number {
  const folder = mkdtempSync(path.join(tmpdir(), 'gradus-learner-'));
  try {
    return openSync(path.join(folder, 'state'), 'w+');
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Where a value lies in the file: an outline of so many bytes at the end of its arrays. */
export interface Written {
  arrays: number;
  outline: number;
}

/** Writes a structured-cloneable value from the beginning of the file, its arrays of numbers without a copy. */
export async function writeValue(file: number, value: unknown): Promise<Written> {
  const outline = new Outline();
  outline.writeHeader();
  outline.writeValue(value);
  const bytes = outline.releaseBuffer();
  let at = 0;
  for (const array of outline.arrays) at = await writeAll(file, array, at);
  await writeAll(file, bytes, at);
  return { arrays: at, outline: bytes.length };
}

type Allocate = (bytes: number) => ArrayBuffer;
const ordinary: Allocate = (bytes) => new ArrayBuffer(bytes);

/** What was written, in arrays of its own; the file is empty afterwards. */
export async function readValue(
  file: number,
  { arrays, outline }: Written,
  allocate = ordinary,
): Promise<unknown> {
  const bytes = Buffer.allocUnsafeSlow(outline);
  await readAll(file, bytes, arrays);
  const reader = new OutlineReader(bytes, allocate);
  reader.readHeader();
  const value: unknown = reader.readValue();
  let at = 0;
  for (const array of reader.arrays) at = await readAll(file, array, at);
  ftruncateSync(file, 0);
  return value;
}

const ARRAYS = [Float32Array, Float64Array, Int32Array, Uint8Array] as const;
type NumberArray = InstanceType<(typeof ARRAYS)[number]>;

/** In Node's documentation, but not in its types. */
interface TreatsViews {
  _setTreatArrayBufferViewsAsHostObjects(flag: boolean): void;
}

/** Kind and length of each array of numbers in its place; the arrays themselves beside it. */
class Outline extends Serializer {
  readonly arrays: NumberArray[] = [];

  constructor() {
    super();
    // oxlint-disable-next-line no-underscore-dangle -- Node's name
    (this as unknown as TreatsViews)._setTreatArrayBufferViewsAsHostObjects(true);
  }

  _writeHostObject(array: NumberArray): void {
    const kind = ARRAYS.findIndex((one) => array instanceof one);
    if (kind < 0) throw new TypeError(`${array.constructor.name} does not pass between learner and worker`);
    this.writeUint32(kind);
    this.writeDouble(array.length);
    this.arrays.push(array);
  }
}

class OutlineReader extends Deserializer {
  readonly arrays: NumberArray[] = [];
  private readonly allocate: Allocate;

  constructor(bytes: Buffer, allocate: Allocate) {
    super(bytes);
    this.allocate = allocate;
  }

  _readHostObject(): NumberArray {
    const kind = ARRAYS[this.readUint32()]!;
    const array = new kind(this.allocate(this.readDouble() * kind.BYTES_PER_ELEMENT));
    this.arrays.push(array);
    return array;
  }
}

const [readSome, writeSome] = [promisify(read), promisify(write)];
/** One call moves less than 2 GiB. */
const MOST = 2 ** 30;

async function writeAll(file: number, array: NumberArray, position: number): Promise<number> {
  const bytes = bytesOf(array);
  for (let at = 0; at < bytes.length;) {
    const { bytesWritten } = await writeSome(
      file,
      bytes,
      at,
      Math.min(MOST, bytes.length - at),
      position + at,
    );
    at += bytesWritten;
  }
  return position + bytes.length;
}

async function readAll(file: number, array: NumberArray, position: number): Promise<number> {
  const bytes = bytesOf(array);
  for (let at = 0; at < bytes.length;) {
    const { bytesRead } = await readSome(file, bytes, at, Math.min(MOST, bytes.length - at), position + at);
    if (bytesRead === 0) throw new Error(`a value of ${bytes.length} bytes ends after ${at}`);
    at += bytesRead;
  }
  return position + bytes.length;
}

const bytesOf = ({ buffer, byteOffset, byteLength }: NumberArray): Uint8Array =>
  new Uint8Array(buffer, byteOffset, byteLength);

export { closeSync as closeFile };
