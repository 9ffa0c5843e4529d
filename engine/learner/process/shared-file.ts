import { closeSync, ftruncateSync, mkdtempSync, openSync, readv, rmSync, writev } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { Deserializer, Serializer } from 'node:v8';
import { byteCount } from '../../../core/byte-parts.ts';

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
  const arrays = outline.arrays.map(bytesOf);
  await moveAll(writeSome, file, [...arrays, bytes], 0);
  return { arrays: byteCount(arrays), outline: bytes.length };
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
  await moveAll(readSome, file, [bytes], arrays);
  const reader = new OutlineReader(bytes, allocate);
  reader.readHeader();
  const value: unknown = reader.readValue();
  await moveAll(readSome, file, reader.arrays.map(bytesOf), 0);
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

/** Gives how many bytes it moved. */
type Move = (file: number, parts: Uint8Array[], position: number) => Promise<number>;
const [read, write] = [promisify(readv), promisify(writev)];
const readSome: Move = async (...where) => (await read(...where)).bytesRead;
const writeSome: Move = async (...where) => (await write(...where)).bytesWritten;
/** One call moves less than 2 GiB. */
const MOST = 2 ** 30;

/** All parts, which lie end to end from `position` on: many in a call, for a model has hundreds, most of them small. */
async function moveAll(
  move: Move,
  file: number,
  parts: readonly Uint8Array[],
  position: number,
): Promise<void> {
  let at = position;
  let left = parts.filter(({ length }) => length > 0);
  while (left.length > 0) {
    const moved = await move(file, asMany(left), at);
    if (moved === 0) throw new Error(`a file ends at ${at}, before ${byteCount(left)} bytes`);
    at += moved;
    left = after(left, moved);
  }
}

/** The first parts, of no more bytes together than a call moves. */
function asMany(parts: readonly Uint8Array[]): Uint8Array[] {
  let room = MOST;
  const some: Uint8Array[] = [];
  for (const part of parts) {
    some.push(part.subarray(0, room));
    room -= part.length;
    if (room <= 0) break;
  }
  return some;
}

/** What is left of parts whose first bytes were moved. */
function after(parts: readonly Uint8Array[], moved: number): Uint8Array[] {
  let skipped = moved;
  let whole = 0;
  while (whole < parts.length && skipped >= parts[whole]!.length) skipped -= parts[whole++]!.length;
  const left = parts.slice(whole);
  return skipped === 0 ? left : [left[0]!.subarray(skipped), ...left.slice(1)];
}

const bytesOf = ({ buffer, byteOffset, byteLength }: NumberArray): Uint8Array =>
  new Uint8Array(buffer, byteOffset, byteLength);

export { closeSync as closeFile };
