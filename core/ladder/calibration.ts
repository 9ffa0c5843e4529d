/**
 * How far a lower tier can be trusted, from pairs of scores with the tier above it: sums only, so that it is small,
 * and what order pairs came in makes no difference but rounding.
 */
export interface Calibration {
  n: number;
  x: number;
  y: number;
  xx: number;
  xy: number;
  yy: number;
  /** Pairs by what both said: cheap passed or not, then dear passed or not. */
  agreement: { passPass: number; passFail: number; failPass: number; failFail: number };
}

export interface ScorePair {
  cheap: number;
  dear: number;
  cheapPassed: boolean;
  dearPassed: boolean;
}

export const noCalibration = (): Calibration => ({
  n: 0,
  x: 0,
  y: 0,
  xx: 0,
  xy: 0,
  yy: 0,
  agreement: { passPass: 0, passFail: 0, failPass: 0, failFail: 0 },
});

/** Adds pairs, sorted first: the same pairs give the same sums to the bit, in whatever order they came. */
export function addPairs(before: Calibration, pairs: readonly ScorePair[]): Calibration {
  const after = { ...before, agreement: { ...before.agreement } };
  for (const { cheap, dear, cheapPassed, dearPassed } of pairs.toSorted(
    (a, b) => a.cheap - b.cheap || a.dear - b.dear,
  )) {
    after.n++;
    after.x += cheap;
    after.y += dear;
    after.xx += cheap * cheap;
    after.xy += cheap * dear;
    after.yy += dear * dear;
    after.agreement[`${cheapPassed ? 'pass' : 'fail'}${dearPassed ? 'Pass' : 'Fail'}`]++;
  }
  return after;
}

// The prior: the higher tier says the same, give or take 0.3, believed as much as one pair.
const PRIOR = { intercept: 0, slope: 1, precision: 1, shape: 1.5, scale: 0.5 * 0.3 ** 2 };

/** What the higher tier is expected to say; the deviation holds its scatter and what is not yet known of the line. */
export interface Prediction {
  mean: number;
  deviation: number;
}

/**
 * Posterior predictive of Bayesian linear regression, dear = a + b · cheap, with the conjugate normal-inverse-gamma
 * prior (Gelman et al., Bayesian Data Analysis, section 14.2): a Student's t, given by mean and standard deviation.
 */
export function predict(calibration: Calibration, cheap: number): Prediction {
  const { n, x, y, xx, xy, yy } = calibration;
  const p = PRIOR.precision;
  // Posterior precision [[s0, s1], [s1, s2]], and the right-hand side that gives the mean line.
  const s0 = n + p;
  const s1 = x;
  const s2 = xx + p;
  const r0 = y + p * PRIOR.intercept;
  const r1 = xy + p * PRIOR.slope;
  const determinant = s0 * s2 - s1 * s1;
  const a = (s2 * r0 - s1 * r1) / determinant;
  const b = (s0 * r1 - s1 * r0) / determinant;
  const shape = PRIOR.shape + n / 2;
  const residual = yy + p * (PRIOR.intercept ** 2 + PRIOR.slope ** 2) - (a * r0 + b * r1);
  const scale = PRIOR.scale + Math.max(0, residual) / 2;
  const leverage = (s2 - 2 * s1 * cheap + s0 * cheap * cheap) / determinant;
  const variance = (scale / (shape - 1)) * (1 + leverage);
  return { mean: a + b * cheap, deviation: Math.sqrt(variance) };
}

/** Probability that the higher tier passes what the cheap one passed (or failed), with its deviation: Beta(1, 1) and the pairs. */
export function agreement({ agreement: pairs }: Calibration, cheapPassed: boolean): Prediction {
  const passed = 1 + (cheapPassed ? pairs.passPass : pairs.failPass);
  const failed = 1 + (cheapPassed ? pairs.passFail : pairs.failFail);
  const total = passed + failed;
  return {
    mean: passed / total,
    deviation: Math.sqrt((passed * failed) / (total * total * (total + 1))),
  };
}
