/** 1 / (1 + exp(−x)), without overflow. */
export const sigmoid = (x: number): number =>
  x >= 0 ? 1 / (1 + Math.exp(-x)) : Math.exp(x) / (1 + Math.exp(x));

/** log σ(x), exact where σ(x) rounds to 0 or 1. */
export const logSigmoid = (x: number): number => Math.min(x, 0) - Math.log1p(Math.exp(-Math.abs(x)));
