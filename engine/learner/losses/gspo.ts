import type { GspoObjective } from '../../../core/algorithms/objective.ts';
import { given } from './loss.ts';
import type { CoupledLoss } from './loss.ts';
import { countedTokens } from './counted-tokens.ts';

/**
 * GSPO (Zheng et al. 2025, arXiv 2507.18071, eqs. 5 and 7), to be minimized: over the sequences that have any token that
 * counts, the mean of −min(s A, clip(s, 1 − low, 1 + high) A) with one ratio for the sequence,
 * s = exp(mean over its tokens of log p − old). Where advantages differ within a sequence it is GSPO-token (eq. 13), of
 * which the former is the case of equal ones: mean over tokens, each with the slope of its own log-prob.
 */
export const gspoLoss = (settings: GspoObjective): CoupledLoss => ({
  kind: 'coupled',
  from: { temperature: settings.temperature, topK: settings.topK },
  ofSamples: true,
  clips: true,
  needs: ['advantages'],
  movesAll: false,
  reads: (single) => ['advantages', ...(single ? [] : (['old'] as const))],
  compute: (batch, sequences, { logprobs, advantages, old = logprobs }) => {
    const slopes = new Float32Array(logprobs.length);
    const clipped = new Float32Array(logprobs.length);
    const filled = sequences
      .map((sequence) => countedTokens(batch, sequence))
      .filter(({ length }) => length > 0);
    let loss = 0;
    for (const tokens of filled) {
      const share = 1 / (filled.length * tokens.length);
      const logRatio = tokens.reduce((sum, token) => sum + logprobs[token]! - old[token]!, 0) / tokens.length;
      const ratio = Math.exp(logRatio);
      const near = Math.min(Math.max(ratio, 1 - settings.clipRatioLow), 1 + settings.clipRatioHigh);
      for (const token of tokens) {
        const advantage = given(advantages)[token]!;
        const isClipped = near * advantage < ratio * advantage;
        loss -= share * (isClipped ? near : ratio) * advantage;
        if (isClipped) clipped[token] = 1;
        else slopes[token] = -share * ratio * advantage;
      }
    }
    return { loss, slopes, clipped };
  },
});
