import type { RoughEstimate } from './rough-estimate.ts';
import type { Target, Window } from './targets.ts';

/** How far outside of its window a property may be until its score has fallen to e^(−1/2) = 0.61. */
const SLACK: RoughEstimate = { gap_eV: 0.5, dipole_D: 0.4 };

/** A property as it was measured, with one standard deviation of what it may be off on the scale of the target. */
export interface PropertyEstimate {
  value: number;
  deviation: number;
}

/**
 * 1 inside the window, and a Gaussian of the distance to it outside: smooth, so that nearer is better, and flat
 * inside, where there is nothing to gain.
 */
export function windowScore(value: number, [low, high]: Window, slack: number): number {
  const outside = Math.max(low - value, value - high, 0) / slack;
  return Math.exp(-(outside ** 2) / 2);
}

/** Places and weights of an equal-probability sample of a standard normal: 15 quantiles. */
const NORMAL = [
  -1.834, -1.282, -0.967, -0.728, -0.524, -0.341, -0.168, 0, 0.168, 0.341, 0.524, 0.728, 0.967, 1.282, 1.834,
];

/** What score a property has on average over what it may really be, and how much that varies. */
function expected({ value, deviation }: PropertyEstimate, window: Window, slack: number): PropertyEstimate {
  const draws = NORMAL.map((z) => windowScore(value + z * deviation, window, slack));
  const mean = draws.reduce((sum, draw) => sum + draw, 0) / draws.length;
  const variance = draws.reduce((sum, draw) => sum + (draw - mean) ** 2, 0) / draws.length;
  return { value: mean, deviation: Math.sqrt(variance) };
}

/**
 * How well a molecule meets a target, in [0, 1]: the product over the windows that the target has. With measurements
 * that may be off it is the expected score, and its standard deviation the uncertainty.
 */
export function propertyScore(
  target: Pick<Target, 'gap' | 'dipole'>,
  measured: { gap: PropertyEstimate; dipole: PropertyEstimate },
): { score: number; uncertainty: number } {
  const parts = [expected(measured.gap, target.gap, SLACK.gap_eV)];
  if (target.dipole !== null) parts.push(expected(measured.dipole, target.dipole, SLACK.dipole_D));
  const score = parts.reduce((product, { value }) => product * value, 1);
  // Of a product of independent parts.
  const square = parts.reduce((product, { value, deviation }) => product * (value ** 2 + deviation ** 2), 1);
  return { score, uncertainty: Math.sqrt(Math.max(0, square - score ** 2)) };
}
