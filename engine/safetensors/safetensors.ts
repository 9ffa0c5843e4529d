import { joinParts } from '../../core/byte-parts.ts';
import { GradusError } from '../../core/errors.ts';
import { decode, encode } from './dtypes.ts';
import type { Dtype, FloatDtype } from './dtypes.ts';
import { elementCount, headerLength, parseHeader } from './header.ts';

/** A row-major tensor in host memory: float32, whatever it is stored as, or int32. */
export interface StoredTensor {
  shape: readonly number[];
  data: Float32Array | Int32Array;
}

export interface Safetensors {
  tensors: Map<string, StoredTensor>;
  metadata: Record<string, string>;
}

const littleEndian = new Uint8Array(Uint16Array.of(1).buffer)[0] === 1;

/**
 * A safetensors file (https://huggingface.co/docs/safetensors) in parts that lie end to end: 8 bytes header length and the JSON
 * header, padded with spaces to a multiple of 8, then the tensors in the order of the map. Where a tensor can be a view of the
 * numbers that were given it is one, so that a large model is written without a second copy of it: do not change them meanwhile.
 * The same tensors in the same order with the same metadata give the same bytes: metadata keys are sorted. Floats are
 * stored as `floats`.
 * Throws GradusError('store', 'invalid-tensor') when a shape does not fit its data.
 */
export function safetensorsParts(
  tensors: ReadonlyMap<string, StoredTensor>,
  metadata: Readonly<Record<string, string>> = {},
  floats: FloatDtype = 'F32',
): Uint8Array[] {
  requireLittleEndian();
  const header: [string, unknown][] = [];
  const names = Object.keys(metadata).toSorted();
  if (names.length > 0) header.push(['__metadata__', objectOf(names.map((name) => [name, metadata[name]]))]);
  let size = 0;
  const stored: Uint8Array[] = [];
  for (const [name, { shape, data }] of tensors) {
    if (name === '__metadata__' || elementCount(shape) !== data.length) {
      throw new GradusError(
        'store',
        'invalid-tensor',
        `tensor ${name}: shape [${shape.join(', ')}] does not describe ${data.length} numbers, or the name is reserved`,
      );
    }
    const dtype: Dtype = data instanceof Float32Array ? floats : 'I32';
    const bytes = data instanceof Float32Array ? encode(data, floats) : bytesOf(data);
    stored.push(bytes);
    const end = size + bytes.byteLength;
    header.push([name, { dtype, shape: [...shape], data_offsets: [size, end] }]);
    size = end;
  }
  const json = new TextEncoder().encode(JSON.stringify(objectOf(header)));
  const headerBytes = Math.ceil(json.length / 8) * 8;
  const begin = new Uint8Array(8 + headerBytes);
  new DataView(begin.buffer).setBigUint64(0, BigInt(headerBytes), true);
  begin.fill(0x20, 8);
  begin.set(json, 8);
  return [begin, ...stored];
}

/** The same in one piece. */
export const writeSafetensors = (...content: Parameters<typeof safetensorsParts>): Uint8Array =>
  joinParts(safetensorsParts(...content));

/**
 * Reads what `writeSafetensors` or any other writer made. Where a tensor can be a view of `bytes` it is one: do not
 * change `bytes` afterwards. Tensors come in the order of their bytes. Throws what `parseHeader` throws.
 */
export function readSafetensors(bytes: Uint8Array): Safetensors {
  requireLittleEndian();
  const start = 8 + headerLength(bytes.subarray(0, 8), bytes.length);
  const { entries, metadata } = parseHeader(bytes.subarray(8, start), bytes.length - start);
  const tensors = new Map<string, StoredTensor>();
  for (const { name, dtype, shape, begin, end } of entries) {
    tensors.set(name, { shape, data: decode(bytes.subarray(start + begin, start + end), dtype) });
  }
  return { tensors, metadata };
}

const bytesOf = (data: Int32Array): Uint8Array =>
  new Uint8Array(data.buffer, data.byteOffset, data.byteLength);

/** Unlike an assignment, this keeps a key named `__proto__`. Keys that look like integers would come first. */
const objectOf = (entries: [string, unknown][]): Record<string, unknown> => Object.fromEntries(entries);

function requireLittleEndian(): void {
  // Tensors are viewed as they lie, and the format is little-endian.
  if (!littleEndian)
    throw new GradusError('store', 'big-endian', 'safetensors need a little-endian machine: use one');
}
