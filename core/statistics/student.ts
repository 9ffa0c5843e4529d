import { meanOf, deviationOf } from './standardized.ts';
import type { Mean } from './intervals.ts';

/** Bisections until a quantile is known to a part in 1e15 of its bracket. */
const BISECTIONS = 60;

/**
 * P(|T| ≤ t) of Student's t with a whole number of degrees of freedom (Abramowitz & Stegun 1964, 26.7.3 and 26.7.4):
 * finite sums in θ = arctan(t / √ν).
 */
export function chanceWithin(t: number, degrees: number): number {
  const theta = Math.atan(t / Math.sqrt(degrees));
  const [sin, cos] = [Math.sin(theta), Math.cos(theta)];
  const odd = degrees % 2 === 1;
  // cosθ + 2/3 cos³θ + … for odd ones, 1 + 1/2 cos²θ + … for even ones, up to the power ν − 2.
  let term = odd ? cos : 1;
  let sum = degrees === 1 ? 0 : term;
  for (let power = odd ? 3 : 2; power <= degrees - 2; power += 2) {
    term *= ((power - 1) / power) * cos * cos;
    sum += term;
  }
  return odd ? (2 / Math.PI) * (theta + sin * sum) : sin * sum;
}

/** The t that |T| exceeds with a probability of 1 − `confidence`. Throws a RangeError for what is no such question. */
export function studentQuantile(confidence: number, degrees: number): number {
  if (!(confidence > 0 && confidence < 1) || !Number.isInteger(degrees) || degrees < 1)
    throw new RangeError(
      `no quantile of Student's t: confidence ${confidence}, ${degrees} degrees of freedom`,
    );
  let high = 1;
  while (chanceWithin(high, degrees) < confidence) high *= 2;
  let low = 0;
  for (let i = 0; i < BISECTIONS; i++) {
    const middle = (low + high) / 2;
    if (chanceWithin(middle, degrees) < confidence) low = middle;
    else high = middle;
  }
  return high;
}

/** A mean with the interval of Student's t (1908) for a two-sided confidence; null for fewer than two values. */
export function meanWithStudent(values: readonly number[], confidence: number): Mean | null {
  const n = values.length;
  if (n < 2) return null;
  const mean = meanOf(values);
  const spread = studentQuantile(confidence, n - 1) * (deviationOf(values) / Math.sqrt(n));
  return { mean, n, low: mean - spread, high: mean + spread };
}
