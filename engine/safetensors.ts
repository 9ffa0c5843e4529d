import { GradusError } from '../core/errors.ts';

/** A row-major tensor in host memory; its type is its dtype (`F32` or `I32`). */
export interface StoredTensor {
  shape: readonly number[];
  data: Float32Array | Int32Array;
}

export interface Safetensors {
  tensors: Map<string, StoredTensor>;
  metadata: Record<string, string>;
}

type Dtype = 'F32' | 'I32';

interface Entry {
  name: string;
  dtype: Dtype;
  shape: number[];
  begin: number;
  end: number;
}

/** The limit of the reference reader: a longer header is a damaged length, not a header. */
const MAX_HEADER_BYTES = 100_000_000;
const ITEM_BYTES = 4;

const littleEndian = new Uint8Array(Uint16Array.of(1).buffer)[0] === 1;

/**
 * The bytes of a safetensors file (https://huggingface.co/docs/safetensors): 8 bytes header length, JSON header
 * padded with spaces to a multiple of 8, tensors end to end in the order of the map. The same tensors in the same
 * order with the same metadata give the same bytes: metadata keys are sorted.
 * Throws GradusError('store', 'invalid-tensor') when a shape does not fit its data.
 */
export function writeSafetensors(
  tensors: ReadonlyMap<string, StoredTensor>,
  metadata: Readonly<Record<string, string>> = {},
): Uint8Array {
  requireLittleEndian();
  const header: [string, unknown][] = [];
  const names = Object.keys(metadata).toSorted();
  if (names.length > 0) header.push(['__metadata__', objectOf(names.map((name) => [name, metadata[name]]))]);
  let size = 0;
  for (const [name, { shape, data }] of tensors) {
    if (name === '__metadata__' || elementCount(shape) !== data.length) {
      throw new GradusError(
        'store',
        'invalid-tensor',
        `tensor ${name}: shape [${shape.join(', ')}] does not describe ${data.length} numbers, or the name is reserved`,
      );
    }
    const end = size + data.byteLength;
    header.push([name, { dtype: dtypeOf(data), shape: [...shape], data_offsets: [size, end] }]);
    size = end;
  }
  const json = new TextEncoder().encode(JSON.stringify(objectOf(header)));
  const headerBytes = Math.ceil(json.length / 8) * 8;
  const bytes = new Uint8Array(8 + headerBytes + size);
  new DataView(bytes.buffer).setBigUint64(0, BigInt(headerBytes), true);
  bytes.fill(0x20, 8, 8 + headerBytes);
  bytes.set(json, 8);
  let at = 8 + headerBytes;
  for (const { data } of tensors.values()) {
    bytes.set(new Uint8Array(data.buffer, data.byteOffset, data.byteLength), at);
    at += data.byteLength;
  }
  return bytes;
}

/**
 * Reads what `writeSafetensors` or any other writer made. Where a tensor lies at a multiple of 4 in `bytes.buffer`
 * it is a view of it, otherwise a copy: do not change `bytes` afterwards. Tensors come in the order of their bytes.
 * Throws GradusError('store', 'corrupt-safetensors') for anything truncated, overlapping, with holes or of a wrong
 * size, and GradusError('store', 'unsupported-dtype') for dtypes other than F32 and I32.
 */
export function readSafetensors(bytes: Uint8Array): Safetensors {
  requireLittleEndian();
  if (bytes.length < 8) throw corrupt(`${bytes.length} bytes cannot hold a header`);
  const length = new DataView(bytes.buffer, bytes.byteOffset, 8).getBigUint64(0, true);
  if (length > BigInt(MAX_HEADER_BYTES) || Number(length) > bytes.length - 8) {
    throw corrupt(`a header of ${length} bytes does not fit into a file of ${bytes.length}`);
  }
  const start = 8 + Number(length);
  const { entries, metadata } = readHeader(bytes.subarray(8, start));
  let at = 0;
  for (const entry of entries) {
    if (entry.begin !== at) throw corrupt(`tensor ${entry.name} overlaps another one or leaves a hole`);
    if (entry.end - entry.begin !== elementCount(entry.shape) * ITEM_BYTES) {
      throw corrupt(
        `tensor ${entry.name} has ${entry.end - entry.begin} bytes for shape [${entry.shape.join(', ')}]`,
      );
    }
    at = entry.end;
  }
  if (at !== bytes.length - start)
    throw corrupt(`the header describes ${at} bytes of data, the file has ${bytes.length - start}`);
  const tensors = new Map<string, StoredTensor>();
  for (const { name, dtype, shape, begin, end } of entries) {
    tensors.set(name, { shape, data: view(bytes, dtype, start + begin, (end - begin) / ITEM_BYTES) });
  }
  return { tensors, metadata };
}

function readHeader(bytes: Uint8Array): { entries: Entry[]; metadata: Record<string, string> } {
  let header: unknown;
  try {
    header = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch (cause) {
    throw corrupt('the header is not JSON', cause);
  }
  if (!isRecord(header)) throw corrupt('the header is not an object');
  let metadata: Record<string, string> = {};
  const entries: Entry[] = [];
  for (const [name, value] of Object.entries(header)) {
    if (name !== '__metadata__') entries.push(readEntry(name, value));
    else if (isTextRecord(value)) metadata = value;
    else throw corrupt('__metadata__ is not a map of text to text');
  }
  // Empty tensors share their offset with the next one, and come first.
  entries.sort((a, b) => a.begin - b.begin || a.end - b.end);
  return { entries, metadata };
}

function readEntry(name: string, value: unknown): Entry {
  if (!isRecord(value)) throw corrupt(`the header of tensor ${name} is not an object`);
  const { dtype, shape, data_offsets: offsets } = value;
  if (!isCounts(shape)) throw corrupt(`tensor ${name} has no valid shape`);
  if (!isCounts(offsets) || offsets.length !== 2 || offsets[1]! < offsets[0]!) {
    throw corrupt(`tensor ${name} has no valid data_offsets`);
  }
  if (dtype !== 'F32' && dtype !== 'I32') {
    throw new GradusError(
      'store',
      'unsupported-dtype',
      `tensor ${name} is of dtype ${String(dtype)}: convert the file to F32 first`,
    );
  }
  return { name, dtype, shape, begin: offsets[0]!, end: offsets[1]! };
}

function view(bytes: Uint8Array, dtype: Dtype, at: number, count: number): Float32Array | Int32Array {
  const offset = bytes.byteOffset + at;
  const aligned = offset % ITEM_BYTES === 0;
  const buffer = aligned ? bytes.buffer : bytes.slice(at, at + count * ITEM_BYTES).buffer;
  return dtype === 'F32'
    ? new Float32Array(buffer, aligned ? offset : 0, count)
    : new Int32Array(buffer, aligned ? offset : 0, count);
}

const dtypeOf = (data: Float32Array | Int32Array): Dtype => (data instanceof Float32Array ? 'F32' : 'I32');

const elementCount = (shape: readonly number[]): number => shape.reduce((product, n) => product * n, 1);

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const isTextRecord = (value: unknown): value is Record<string, string> =>
  isRecord(value) && Object.values(value).every((text) => typeof text === 'string');

const isCounts = (value: unknown): value is number[] =>
  Array.isArray(value) && value.every((n) => Number.isSafeInteger(n) && n >= 0);

/** Unlike an assignment, this keeps a key named `__proto__`. Keys that look like integers would come first. */
const objectOf = (entries: [string, unknown][]): Record<string, unknown> => Object.fromEntries(entries);

function requireLittleEndian(): void {
  // Tensors are viewed as they lie, and the format is little-endian.
  if (!littleEndian)
    throw new GradusError('store', 'big-endian', 'safetensors need a little-endian machine: use one');
}

const corrupt = (what: string, cause?: unknown): GradusError =>
  new GradusError(
    'store',
    'corrupt-safetensors',
    `not a whole safetensors file: ${what}. Fetch it again, or go back to an earlier checkpoint`,
    { cause },
  );
