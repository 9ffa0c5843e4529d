import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { decode, encode } from '../../../../engine/safetensors/dtypes.ts';
import type { FloatDtype } from '../../../../engine/safetensors/dtypes.ts';
import { propertyRuns } from '../../../support/property-runs.ts';

const all = Uint16Array.from({ length: 0x1_0000 }, (_, i) => i);
const bytesOf = (halves: Uint16Array) => new Uint8Array(halves.buffer);
const encoded = (x: number, dtype: FloatDtype) =>
  new Uint16Array(encode(Float32Array.of(x), dtype).buffer)[0]!;

/** The value of a 16-bit float with so many exponent and fraction bits, from its definition (IEEE 754). */
function valueOf(bits: number, exponentBits: number): number {
  const fractionBits = 15 - exponentBits;
  const bias = 2 ** (exponentBits - 1) - 1;
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits & 0x7fff) >> fractionBits;
  const fraction = bits & (2 ** fractionBits - 1);
  if (exponent === 2 ** exponentBits - 1) return fraction === 0 ? sign * Infinity : NaN;
  const scale = 2 ** (Math.max(exponent, 1) - bias - fractionBits);
  return sign * scale * (fraction + (exponent === 0 ? 0 : 2 ** fractionBits));
}

describe.each<[FloatDtype, number]>([
  ['F16', 5],
  ['BF16', 8],
])('%s', (dtype, exponentBits) => {
  const values = Array.from(all, (bits) => valueOf(bits, exponentBits));

  test('every bit pattern is read as what it means, and written back as it was', () => {
    const read = decode(bytesOf(all), dtype) as Float32Array;
    expect(read.every((x, i) => Object.is(x, values[i]))).toBe(true);
    const written = new Uint16Array(encode(read, dtype).buffer);
    // A NaN stays one; its payload may change.
    const wrong = all.filter((bits, i) => written[i] !== bits && !Number.isNaN(values[i]));
    expect(wrong).toHaveLength(0);
    const lost = all.filter((_, i) => Number.isNaN(values[i]) && !Number.isNaN(values[written[i]!]));
    expect(lost).toHaveLength(0);
  });

  test('a number between two is written as the nearer one, a tie as the even one', () => {
    const positive = Array.from(all.subarray(0, 0x8000), (bits) => ({ bits, value: values[bits]! })).filter(
      ({ value }) => Number.isFinite(value),
    );
    fc.assert(
      fc.property(
        fc.nat(positive.length - 2),
        fc.double({ min: 0, max: 1, noNaN: true }),
        fc.boolean(),
        (i, part, negative) => {
          const [low, high] = [positive[i]!, positive[i + 1]!];
          const x = Math.fround(low.value + part * (high.value - low.value));
          const [below, above] = [x - low.value, high.value - x];
          const even = low.bits % 2 === 0 ? low : high;
          const expected = below < above ? low : above < below ? high : even;
          expect(encoded(negative ? -x : x, dtype)).toBe(expected.bits + (negative ? 0x8000 : 0));
        },
      ),
      { numRuns: propertyRuns(2000) },
    );
  });

  test('what is too large becomes infinite, what is too small zero', () => {
    expect(values[encoded(3.4e38, dtype)]).toBe(Infinity);
    expect(values[encoded(-Infinity, dtype)]).toBe(-Infinity);
    expect(Object.is(values[encoded(-1e-45, dtype)], -0)).toBe(true);
  });
});

test('bytes that do not lie at a multiple of the item size are read all the same', () => {
  const shifted = new Uint8Array(9);
  shifted.set(new Uint8Array(Float32Array.of(1.5, -2).buffer), 1);
  expect(decode(shifted.subarray(1), 'F32')).toEqual(Float32Array.of(1.5, -2));
});
