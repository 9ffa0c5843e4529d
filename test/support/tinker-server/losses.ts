/** What a datum says of its targets, [T − 1] each. */
export interface LossInputs {
  weights: number[];
  logprobs: number[];
  advantages: number[];
}

interface Clip {
  clip_low_threshold?: number | undefined;
  clip_high_threshold?: number | undefined;
}

/** The API's losses as its documentation has them: dL / d log p of each target, of a sum over tokens. */
export function slopesOf(
  loss: string,
  now: number[],
  { weights, logprobs, advantages }: LossInputs,
  { clip_low_threshold: low = 0.8, clip_high_threshold: high = 1.2 }: Clip,
): number[] {
  return now.map((p, i) => {
    if (loss === 'cross_entropy') return -weights[i]!;
    const [ratio, advantage] = [Math.exp(p - logprobs[i]!), advantages[i]!];
    const bounded = Math.min(Math.max(ratio, low), high);
    if (loss === 'importance_sampling') return -ratio * advantage;
    if (loss === 'cispo') return -bounded * advantage;
    // The smaller one counts, and what is clipped has no gradient.
    return bounded * advantage < ratio * advantage ? 0 : -ratio * advantage;
  });
}
