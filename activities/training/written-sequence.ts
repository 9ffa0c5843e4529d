import type { TrainingSample } from '../../core/algorithms/training-sample.ts';

/** A sequence that nobody sampled, written part by part: what is masked in has this weight as its advantage. */
export function writtenSequence(weight: number): {
  sequence: TrainingSample;
  append: (tokens: readonly number[], mask: 0 | 1) => void;
} {
  const advantages: number[] = [];
  const samplerLogprobs: number[] = [];
  const sequence: TrainingSample = { tokens: [], mask: [], streams: { advantages, samplerLogprobs } };
  return {
    sequence,
    append: (tokens, mask) => {
      for (const token of tokens) {
        sequence.tokens.push(token);
        sequence.mask.push(mask);
        advantages.push(mask * weight);
        samplerLogprobs.push(0);
      }
    },
  };
}
