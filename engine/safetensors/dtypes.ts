/** How a tensor is stored. In memory all floating-point ones are float32. */
export type FloatDtype = 'F32' | 'F16' | 'BF16';
export type Dtype = FloatDtype | 'I32';

export const ITEM_BYTES: Record<Dtype, number> = { F32: 4, F16: 2, BF16: 2, I32: 4 };

export const isDtype = (name: unknown): name is Dtype =>
  typeof name === 'string' && Object.hasOwn(ITEM_BYTES, name);

/**
 * The numbers in these bytes. F32 and I32 are views where they lie at a multiple of 4, copies elsewhere; the halves
 * become float32 exactly.
 */
export function decode(bytes: Uint8Array, dtype: Dtype): Float32Array | Int32Array {
  const size = ITEM_BYTES[dtype];
  const { buffer, byteOffset } = bytes.byteOffset % size === 0 ? bytes : bytes.slice();
  const count = bytes.byteLength / size;
  if (dtype === 'F32') return new Float32Array(buffer, byteOffset, count);
  if (dtype === 'I32') return new Int32Array(buffer, byteOffset, count);
  const halves = new Uint16Array(buffer, byteOffset, count);
  const words = new Uint32Array(count);
  if (dtype === 'BF16') for (let i = 0; i < count; i++) words[i] = halves[i]! << 16;
  else for (let i = 0; i < count; i++) words[i] = float32BitsOfHalf(halves[i]!);
  return new Float32Array(words.buffer);
}

/** float32 as stored: rounded to the nearest, ties to even, as every other writer does. NaN stays NaN. */
export function encode(data: Float32Array, dtype: FloatDtype): Uint8Array {
  if (dtype === 'F32') return new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  const words = new Uint32Array(data.buffer, data.byteOffset, data.length);
  const halves = Uint16Array.from(words, dtype === 'BF16' ? bfloatBits : halfBits);
  return new Uint8Array(halves.buffer);
}

function bfloatBits(word: number): number {
  const isNaN = (word & 0x7fff_ffff) > 0x7f80_0000;
  return isNaN ? (word >>> 16) | 0x40 : (word + 0x7fff + ((word >>> 16) & 1)) >>> 16;
}

function float32BitsOfHalf(half: number): number {
  const sign = (half & 0x8000) << 16;
  const exponent = (half >>> 10) & 0x1f;
  const fraction = half & 0x3ff;
  if (exponent === 0x1f) return (sign | 0x7f80_0000 | (fraction << 13)) >>> 0;
  if (exponent !== 0) return (sign | ((exponent + 112) << 23) | (fraction << 13)) >>> 0;
  if (fraction === 0) return sign >>> 0;
  // A subnormal half is a normal float32: shift until the leading one falls out.
  const shift = Math.clz32(fraction) - 21;
  return (sign | ((113 - shift) << 23) | ((fraction << (shift + 13)) & 0x7f_ffff)) >>> 0;
}

function halfBits(word: number): number {
  const sign = (word >>> 16) & 0x8000;
  const magnitude = word & 0x7fff_ffff;
  if (magnitude > 0x7f80_0000) return sign | 0x7e00 | ((word >>> 13) & 0x1ff);
  if (magnitude >= 0x4780_0000) return sign | 0x7c00;
  // Below 2^-14 a half is a whole number of 2^-24.
  const shift = magnitude < 0x3880_0000 ? 126 - (magnitude >>> 23) : 13;
  if (shift > 24) return sign;
  const significand = magnitude < 0x3880_0000 ? (magnitude & 0x7f_ffff) | 0x80_0000 : magnitude - 0x3800_0000;
  const kept = significand >>> shift;
  const rest = significand - kept * 2 ** shift;
  const tie = 2 ** (shift - 1);
  // A carry out of the fraction lands in the exponent, as it should.
  return sign | (kept + (rest > tie || (rest === tie && (kept & 1) === 1) ? 1 : 0));
}
