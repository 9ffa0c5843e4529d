/** Successes out of trials. */
export interface Proportion {
  successes: number;
  trials: number;
}

export interface Interval {
  low: number;
  high: number;
}

/** The part that succeeded; 0 of 0 is 0. */
export const rate = (p: Proportion): number => (p.trials === 0 ? 0 : p.successes / p.trials);

/**
 * Wilson's score interval (Wilson 1927) for a two-sided confidence in (0, 1). Without trials it is [0, 1].
 */
export function wilson(p: Proportion, confidence: number): Interval {
  if (p.trials === 0) return { low: 0, high: 1 };
  const z = normalQuantile(0.5 + confidence / 2);
  const n = p.trials;
  const phat = p.successes / n;
  const center = phat + (z * z) / (2 * n);
  const spread = z * Math.sqrt((phat * (1 - phat)) / n + (z * z) / (4 * n * n));
  const scale = 1 + (z * z) / n;
  return { low: Math.max(0, (center - spread) / scale), high: Math.min(1, (center + spread) / scale) };
}

export interface Mean extends Interval {
  mean: number;
  n: number;
}

/** A mean with its normal-theory interval (z · s / √n) for a two-sided confidence; null where there are no values. */
export function meanWithInterval(values: readonly number[], confidence: number): Mean | null {
  const n = values.length;
  if (n === 0) return null;
  const mean = values.reduce((sum, value) => sum + value, 0) / n;
  const square = values.reduce((sum, value) => sum + (value - mean) ** 2, 0);
  // One value says nothing of its scatter.
  if (n === 1) return { mean, n, low: -Infinity, high: Infinity };
  const spread = normalQuantile(0.5 + confidence / 2) * Math.sqrt(square / (n - 1) / n);
  return { mean, n, low: mean - spread, high: mean + spread };
}

/** The inverse of the standard normal distribution function (Acklam's rational approximation, relative error below 1.2e-9). */
export function normalQuantile(p: number): number {
  if (!(p > 0 && p < 1)) throw new RangeError(`a probability strictly between 0 and 1 is needed, not ${p}`);
  const a = [
    -39.69683028665376, 220.9460984245205, -275.9285104469687, 138.357751867269, -30.66479806614716,
    2.506628277459239,
  ];
  const b = [
    -54.47609879822406, 161.5858368580409, -155.6989798598866, 66.80131188771972, -13.28068155288572,
  ];
  const c = [
    -0.007784894002430293, -0.3223964580411365, -2.400758277161838, -2.549732539343734, 4.374664141464968,
    2.938163982698783,
  ];
  const d = [0.007784695709041462, 0.3224671290700398, 2.445134137142996, 3.754408661907416];
  const horner = (coefficients: number[], x: number) => coefficients.reduce((sum, k) => sum * x + k, 0);
  if (p < 0.02425) {
    const q = Math.sqrt(-2 * Math.log(p));
    return horner(c, q) / horner([...d, 1], q);
  }
  if (p > 1 - 0.02425) return -normalQuantile(1 - p);
  const q = p - 0.5;
  const r = q * q;
  return (horner(a, r) * q) / horner([...b, 1], r);
}
