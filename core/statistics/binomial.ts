import type { Proportion } from './intervals.ts';

// Exact bounds of a proportion. They hold for a sum of trials with different chances of success too, such as held-out
// tasks of several levels: where it counts, its tails are no heavier than the binomial's (Hoeffding 1956, theorem 4).

/** Bisections until a bound is known to 1e-12. */
const BISECTIONS = 40;

/** P(X ≥ successes) of X ~ binomial(trials, chance). */
export function chanceOfAtLeast({ successes, trials }: Proportion, chance: number): number {
  if (successes <= 0) return 1;
  if (successes > trials || chance <= 0) return 0;
  if (chance >= 1) return 1;
  if (successes > trials * chance) return tail(successes, trials, chance, logChoose(trials, successes));
  const failures = trials - successes + 1;
  return 1 - tail(failures, trials, 1 - chance, logChoose(trials, failures));
}

/** Σ P(X = k) over k ≥ from, for `from` above the mean, from where on terms only fall. `choose`: log of trials over from. */
function tail(from: number, trials: number, chance: number, choose: number): number {
  const odds = chance / (1 - chance);
  let term = Math.exp(choose + from * Math.log(chance) + (trials - from) * Math.log1p(-chance));
  let sum = 0;
  for (let k = from; k <= trials && term > sum * Number.EPSILON; k++) {
    sum += term;
    term *= ((trials - k) / (k + 1)) * odds;
  }
  return Math.min(1, sum);
}

function logChoose(n: number, k: number): number {
  let log = 0;
  for (let i = 1; i <= Math.min(k, n - k); i++) log += Math.log((n + 1 - i) / i);
  return log;
}

/**
 * Clopper and Pearson's lower bound (1934): it is above the true chance of success with a probability of `error` at
 * most. 0 without trials.
 */
export function lowerBound({ successes, trials }: Proportion, error: number): number {
  if (successes === 0) return 0;
  const choose = logChoose(trials, successes);
  let [low, high] = [0, successes / trials];
  for (let i = 0; i < BISECTIONS; i++) {
    const middle = (low + high) / 2;
    if (tail(successes, trials, middle, choose) <= error) low = middle;
    else high = middle;
  }
  return low;
}

/** The upper one: it is below the true chance of success with a probability of `error` at most. 1 without trials. */
export function upperBound({ successes, trials }: Proportion, error: number): number {
  return 1 - lowerBound({ successes: trials - successes, trials }, error);
}
