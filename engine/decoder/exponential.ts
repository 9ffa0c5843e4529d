const LN2_HIGH = 0.6931471803691238;
const LN2_LOW = 1.9082149292705877e-10;
/** Adding it rounds to a whole number. */
const SHIFT = 6755399441055744;
/** e^x is a normal number down to here. */
const LEAST = -708;
const POWERS = Float64Array.from({ length: 1023 }, (_, i) => 2 ** -i);

/**
 * e^x for x ≤ 0, below 1 ulp of error; 0 below −708. `Math.exp` would do, but need not agree with another library's in
 * the last bit; these operations, which native/sampler.cc does too, have one result everywhere. x = n ln 2 + r, and e^r
 * by its Taylor polynomial of degree 13.
 */
export function exponential(x: number): number {
  if (x < LEAST) return 0;
  const n = x * Math.LOG2E + SHIFT - SHIFT;
  const r = x - n * LN2_HIGH - n * LN2_LOW;
  let p = 1.6059043836821613e-10;
  p = p * r + 2.08767569878681e-9;
  p = p * r + 2.505210838544172e-8;
  p = p * r + 2.755731922398589e-7;
  p = p * r + 2.7557319223985893e-6;
  p = p * r + 2.48015873015873e-5;
  p = p * r + 1.984126984126984e-4;
  p = p * r + 1.3888888888888889e-3;
  p = p * r + 8.333333333333333e-3;
  p = p * r + 4.1666666666666664e-2;
  p = p * r + 1.6666666666666666e-1;
  p = p * r + 0.5;
  p = p * r + 1;
  p = p * r + 1;
  return p * POWERS[-n]!;
}
