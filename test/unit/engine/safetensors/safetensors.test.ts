import { expect, test } from 'vitest';
import * as fc from 'fast-check';
import { GradusError } from '../../../../core/errors.ts';
import { readSafetensors, writeSafetensors } from '../../../../engine/safetensors/safetensors.ts';
import type { StoredTensor } from '../../../../engine/safetensors/safetensors.ts';

const f32 = (shape: number[], ...data: number[]): StoredTensor => ({ shape, data: Float32Array.from(data) });
const i32 = (shape: number[], ...data: number[]): StoredTensor => ({ shape, data: Int32Array.from(data) });

/** A file with any header, to say what no honest writer would. */
function file(header: unknown, dataBytes: number, text = JSON.stringify(header)): Uint8Array {
  const json = new TextEncoder().encode(text);
  const bytes = new Uint8Array(8 + json.length + dataBytes);
  new DataView(bytes.buffer).setBigUint64(0, BigInt(json.length), true);
  bytes.set(json, 8);
  return bytes;
}

const corrupt = expect.objectContaining({ boundary: 'store', type: 'corrupt-safetensors', retryable: false });

test('tensors, their order and the metadata survive a round trip to the bit', () => {
  const tensor = fc
    .tuple(fc.array(fc.nat(4), { maxLength: 3 }), fc.boolean(), fc.infiniteStream(fc.integer()))
    .map(([shape, whole, numbers]): StoredTensor => {
      const words = Int32Array.from(numbers.take(shape.reduce((a, b) => a * b, 1)));
      // Any bit pattern, NaN with payload and -0 too.
      return { shape, data: whole ? words : new Float32Array(words.buffer) };
    });
  const name = fc.string({ minLength: 1 }).filter((text) => text !== '__metadata__');
  fc.assert(
    fc.property(
      fc.array(fc.tuple(name, tensor), { maxLength: 6 }),
      fc.dictionary(fc.string(), fc.string()),
      (entries, metadata) => {
        const tensors = new Map(entries);
        const bytes = writeSafetensors(tensors, metadata);
        const read = readSafetensors(bytes);
        expect(read.metadata).toEqual(metadata);
        expect(new Set(read.tensors.keys())).toEqual(new Set(tensors.keys()));
        for (const [key, { shape, data }] of tensors) {
          const again = read.tensors.get(key)!;
          expect(again.shape).toEqual(shape);
          expect(again.data.constructor).toBe(data.constructor);
          const words = (a: StoredTensor['data']) => new Uint8Array(a.buffer, a.byteOffset, a.byteLength);
          expect(words(again.data)).toEqual(words(data));
        }
      },
    ),
  );
});

test('the bytes depend on tensors, order and metadata only', () => {
  const a = new Map([['b', f32([2], 1, 2)], ['a', i32([], 7)]]); // prettier-ignore
  const one = writeSafetensors(a, { y: '1', x: '2' });
  expect(writeSafetensors(new Map(a), { x: '2', y: '1' })).toEqual(one);
  const headerBytes = Number(new DataView(one.buffer).getBigUint64(0, true));
  expect(headerBytes % 8).toBe(0);
  expect(new TextDecoder().decode(one.subarray(8, 8 + headerBytes)).trimEnd()).toBe(
    '{"__metadata__":{"x":"2","y":"1"},' +
      '"b":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"a":{"dtype":"I32","shape":[],"data_offsets":[8,12]}}',
  );
  expect([...readSafetensors(one).tensors.keys()]).toEqual(['b', 'a']);
});

test('aligned bytes are viewed, unaligned ones copied', () => {
  const bytes = writeSafetensors(new Map([['w', f32([2], 1.5, -2)]]));
  expect(readSafetensors(bytes).tensors.get('w')!.data.buffer).toBe(bytes.buffer);
  const shifted = new Uint8Array(bytes.length + 1);
  shifted.set(bytes, 1);
  expect(readSafetensors(shifted.subarray(1)).tensors.get('w')!.data).toEqual(Float32Array.of(1.5, -2));
});

test('every truncation is refused', () => {
  const bytes = writeSafetensors(new Map([['w', f32([2], 1, 2)]]));
  for (let length = 0; length < bytes.length; length++) {
    expect(() => readSafetensors(bytes.subarray(0, length))).toThrow(corrupt);
  }
  const longer = new Uint8Array(bytes.length + 4);
  longer.set(bytes);
  expect(() => readSafetensors(longer)).toThrow(corrupt);
});

const entry = (begin: number, end: number, shape = [(end - begin) / 4], dtype = 'F32') => ({
  dtype,
  shape,
  data_offsets: [begin, end],
});

test.each([
  ['an overlap', file({ a: entry(0, 8), b: entry(4, 12) }, 12)],
  ['two names for one place', file({ a: entry(0, 8), b: entry(0, 8) }, 8)],
  ['a hole', file({ a: entry(0, 4), b: entry(8, 12) }, 12)],
  ['a size that the shape does not have', file({ a: entry(0, 8, [3]) }, 8)],
  ['data past the end', file({ a: entry(0, 16) }, 8)],
  ['offsets backwards', file({ a: entry(8, 0, [0]) }, 8)],
  ['a negative offset', file({ a: entry(-4, 4, [2]) }, 8)],
  ['a shape of text', file({ a: { dtype: 'F32', shape: 'x', data_offsets: [0, 0] } }, 0)],
  ['metadata that is not text', file({ __metadata__: { a: 1 } }, 0)],
  ['a header that is a list', file([], 0)],
  ['a header that is not JSON', file(null, 0, '{"a":')],
])('%s is refused', (_, bytes) => {
  expect(() => readSafetensors(bytes)).toThrow(corrupt);
});

test('a header length that is damaged is refused before anything is allocated', () => {
  const bytes = file({}, 0);
  new DataView(bytes.buffer).setBigUint64(0, 0xffff_ffff_ffff_ffffn, true);
  expect(() => readSafetensors(bytes)).toThrow(corrupt);
});

test('another dtype is refused by name', () => {
  expect(() => readSafetensors(file({ a: entry(0, 4, [4], 'U8') }, 4))).toThrow(/tensor a is of dtype U8/);
});

test('a shape that does not fit its data is not written', () => {
  expect(() => writeSafetensors(new Map([['w', f32([3], 1, 2)]]))).toThrow(GradusError);
  expect(() => writeSafetensors(new Map([['__metadata__', f32([1], 1)]]))).toThrow(/reserved/);
});
