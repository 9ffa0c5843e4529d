/**
 * Kish's effective sample size of importance weights w = exp(log π(a) − log μ(a)), as a part of them:
 * (Σ w)² / (n Σ w²). 1: all weigh the same. It does not change where all weights are multiplied, so the largest one is
 * taken to be 1. Of no weights it is 1; of log-ratios of which one is not finite it is 0.
 */
export function effectiveSamples(logRatios: readonly number[]): number {
  if (logRatios.length === 0) return 1;
  if (!logRatios.every(Number.isFinite)) return 0;
  const largest = logRatios.reduce((most, one) => Math.max(most, one), -Infinity);
  let [sum, squares] = [0, 0];
  for (const one of logRatios) {
    const weight = Math.exp(one - largest);
    sum += weight;
    squares += weight * weight;
  }
  return sum ** 2 / (logRatios.length * squares);
}
