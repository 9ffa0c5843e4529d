import { GradusError } from '../../core/errors.ts';
import { inBrief, parseForeignJson } from '../foreign-json.ts';
import { isDtype, ITEM_BYTES } from './dtypes.ts';
import type { Dtype } from './dtypes.ts';

/** Where a tensor lies: bytes `begin` to `end` after the header. */
export interface TensorEntry {
  name: string;
  dtype: Dtype;
  shape: number[];
  begin: number;
  end: number;
}

export interface SafetensorsHeader {
  /** In the order of their bytes, without holes. */
  entries: TensorEntry[];
  metadata: Record<string, string>;
}

/**
 * A longer header is a damaged length, not a header: the largest model that can be run here has some 14,000 tensors, of
 * 200 bytes each. The reference reader takes 100 MB, which are a minute and a gigabyte when they are all tensors.
 */
const MAX_HEADER_BYTES = 2 ** 24;

/**
 * How long the JSON header is, from the first 8 bytes of a file of `fileBytes`.
 * Throws GradusError('store', 'corrupt-safetensors').
 */
export function headerLength(start: Uint8Array, fileBytes: number): number {
  if (start.length < 8) throw corrupt(`${start.length} bytes cannot hold a header`);
  const length = new DataView(start.buffer, start.byteOffset, 8).getBigUint64(0, true);
  if (length > BigInt(MAX_HEADER_BYTES) || Number(length) > fileBytes - 8) {
    throw corrupt(`a header of ${length} bytes does not fit into a file of ${fileBytes}`);
  }
  return Number(length);
}

/**
 * Reads the JSON header of a file that has `dataBytes` after it.
 * Throws GradusError('store', 'corrupt-safetensors') for anything overlapping, with holes or of a wrong size, and
 * GradusError('store', 'unsupported-dtype') for dtypes other than F32, F16, BF16 and I32.
 */
export function parseHeader(json: Uint8Array, dataBytes: number): SafetensorsHeader {
  const header = readHeader(json);
  let at = 0;
  for (const entry of header.entries) {
    if (entry.begin !== at) throw corrupt(`tensor ${entry.name} overlaps another one or leaves a hole`);
    if (entry.end - entry.begin !== elementCount(entry.shape) * ITEM_BYTES[entry.dtype]) {
      throw corrupt(
        `tensor ${entry.name} has ${entry.end - entry.begin} bytes for shape [${entry.shape.join(', ')}] of ${entry.dtype}`,
      );
    }
    at = entry.end;
  }
  if (at !== dataBytes) throw corrupt(`the header describes ${at} bytes of data, the file has ${dataBytes}`);
  return header;
}

function readHeader(bytes: Uint8Array): SafetensorsHeader {
  let header: unknown;
  try {
    header = parseForeignJson(bytes);
  } catch (cause) {
    throw corrupt('the header is not JSON', cause);
  }
  if (!isRecord(header)) throw corrupt('the header is not an object');
  let metadata: Record<string, string> = {};
  const entries: TensorEntry[] = [];
  for (const [name, value] of Object.entries(header)) {
    if (name !== '__metadata__') entries.push(readEntry(name, value));
    else if (isTextRecord(value)) metadata = value;
    else throw corrupt('__metadata__ is not a map of text to text');
  }
  // Empty tensors share their offset with the next one, and come first.
  entries.sort((a, b) => a.begin - b.begin || a.end - b.end);
  return { entries, metadata };
}

function readEntry(name: string, value: unknown): TensorEntry {
  if (!isRecord(value)) throw corrupt(`the header of tensor ${name} is not an object`);
  const { dtype, shape, data_offsets: offsets } = value;
  if (!isCounts(shape)) throw corrupt(`tensor ${name} has no valid shape`);
  if (!isCounts(offsets) || offsets.length !== 2 || offsets[1]! < offsets[0]!) {
    throw corrupt(`tensor ${name} has no valid data_offsets`);
  }
  if (!isDtype(dtype)) {
    throw new GradusError(
      'store',
      'unsupported-dtype',
      `${inBrief(`tensor ${name} is of dtype ${String(dtype)}`)}: convert the file to F32, F16 or BF16 first`,
    );
  }
  return { name, dtype, shape, begin: offsets[0]!, end: offsets[1]! };
}

export const elementCount = (shape: readonly number[]): number =>
  shape.reduce((product, n) => product * n, 1);

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const isTextRecord = (value: unknown): value is Record<string, string> =>
  isRecord(value) && Object.values(value).every((text) => typeof text === 'string');

const isCounts = (value: unknown): value is number[] =>
  Array.isArray(value) && value.every((n) => Number.isSafeInteger(n) && n >= 0);

export const corrupt = (what: string, cause?: unknown): GradusError =>
  new GradusError(
    'store',
    'corrupt-safetensors',
    `not a whole safetensors file: ${inBrief(what)}. Fetch it again, or go back to an earlier checkpoint`,
    { cause },
  );
