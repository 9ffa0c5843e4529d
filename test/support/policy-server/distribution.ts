import type { Alternative } from '../../../engine/policy.ts';

/** Log-probabilities in nats by token id, [V]; −∞ where a token cannot be drawn. */
export type Distribution = Float64Array;

export interface Truncation {
  /** 0 keeps all. */
  topK: number;
  /** 1 keeps all. */
  topP: number;
  /** Keeps tokens with at least this share of the likeliest one's probability; 0 keeps all. */
  minP: number;
}

/** What the decoder told of a step for which it was asked about the whole vocabulary. */
export function distributionOf(alternatives: readonly Alternative[], vocabSize: number): Distribution {
  const all = new Float64Array(vocabSize).fill(-Infinity);
  for (const { token, logprob } of alternatives) all[token] = logprob;
  return all;
}

/** The distribution at temperature 1 behind one at another temperature. */
export const untempered = (tempered: Distribution, temperature: number): Distribution =>
  normalized(tempered.map((logprob) => logprob * temperature));

/** What top-k, then top-p, then min-p leave, renormalized. Equal ones rank by token id. */
export function truncated(all: Distribution, { topK, topP, minP }: Truncation): Distribution {
  const ranked = [...all.keys()].toSorted((a, b) => all[b]! - all[a]! || a - b);
  const byCount = topK > 0 ? ranked.slice(0, topK) : ranked;
  const mass = byCount.reduce((sum, token) => sum + Math.exp(all[token]!), 0);
  const kept: number[] = [];
  let before = 0;
  for (const token of byCount) {
    if (kept.length > 0 && topP < 1 && before >= topP * mass) break;
    kept.push(token);
    before += Math.exp(all[token]!);
  }
  const floor = minP > 0 ? all[ranked[0]!]! + Math.log(minP) : -Infinity;
  const left = new Float64Array(all.length).fill(-Infinity);
  for (const token of kept) if (all[token]! >= floor) left[token] = all[token]!;
  return normalized(left);
}

/** The first token, by id, at which the running sum passes `u` in [0, 1). */
export function drawFrom(all: Distribution, u: number): number {
  let sum = 0;
  let drawn = all.indexOf(Math.max(...all));
  for (const [token, logprob] of all.entries()) {
    if (logprob === -Infinity) continue;
    sum += Math.exp(logprob);
    drawn = token;
    if (u < sum) break;
  }
  return drawn;
}

/** The `most` likeliest, likeliest first. */
export const likeliest = (all: Distribution, most: number): number[] =>
  most === 0 ? [] : [...all.keys()].toSorted((a, b) => all[b]! - all[a]! || a - b).slice(0, most);

/** 1 for the likeliest; how many are at least as likely as this one. */
export const rankOf = (all: Distribution, token: number): number =>
  all.reduce((count, logprob) => count + (logprob >= all[token]! ? 1 : 0), 0);

function normalized(scores: Distribution): Distribution {
  const most = Math.max(...scores);
  const total = most + Math.log(scores.reduce((sum, score) => sum + Math.exp(score - most), 0));
  return scores.map((score) => score - total);
}
