import type { RolloutDtype } from '../../core/schema/policy.ts';

/** What the weights of matrices are rounded to; norms and biases stay float32. */
export type PackedDtype = Exclude<RolloutDtype, 'float32'>;

/** A matrix [out, in] as the native decoder's kernels read it; native/packed.h says how it lies in memory. */
export interface PackedMatrix {
  /** Which dtype it has, by the number that the kernels know it by. */
  stored: number;
  out: number;
  in: number;
}

const STORED: Record<PackedDtype, number> = { bfloat16: 0, int8: 1 };
const PANEL = 64;

export const packedMatrix = (dtype: PackedDtype, shape: readonly number[]): PackedMatrix => ({
  stored: STORED[dtype],
  out: shape[0]!,
  in: shape[1]!,
});

/** Bytes of a tensor among the weights of a decoder. Those that are packed begin at multiples of 64. */
export function storedBytes(shape: readonly number[], dtype: RolloutDtype): number {
  const float32 = shape.reduce((a, b) => a * b, Float32Array.BYTES_PER_ELEMENT);
  if (dtype === 'float32') return float32;
  if (shape.length === 1) return Math.ceil(float32 / 64) * 64;
  const panels = Math.ceil(shape[0]! / PANEL);
  const inputs = 2 * Math.ceil(shape[1]! / 2);
  // Of int8 each output has a scale beside it.
  return panels * PANEL * (dtype === 'int8' ? inputs + 4 : 2 * inputs);
}
