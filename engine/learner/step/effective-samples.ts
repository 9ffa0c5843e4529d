import type { LearnerMetrics } from '../../../core/requests/learner.ts';
import type { TrainBatch } from '../contract.ts';
import { sampledSpan } from '../batch/sequences.ts';

/**
 * Kish's effective sample size (Σw)² / Σw² of the importance weights w = exp(log p − sampler), before any bound, as a part
 * of their number: of the tokens that these sequences count, and of the sequences, whose weight is the product over their
 * tokens. `logprobs` [T] are those of the weights that the step starts from. null where nothing counts.
 */
export function effectiveSamples(
  batch: Pick<TrainBatch, 'offsets' | 'mask' | 'streams'>,
  sequences: readonly number[],
  logprobs: Float32Array,
): NonNullable<LearnerMetrics['effectiveSamples']> | null {
  const sampler = batch.streams.samplerLogprobs;
  if (!sampler) return null;
  const [tokens, whole]: number[][] = [[], []];
  for (const sequence of sequences) {
    const { first, end } = sampledSpan(batch, sequence);
    if (first === end) continue;
    let sum = 0;
    for (let i = first; i < end; i++) {
      if (batch.mask[i] !== 1) continue;
      const logWeight = logprobs[i]! - sampler[i]!;
      tokens!.push(logWeight);
      sum += logWeight;
    }
    whole!.push(sum);
  }
  if (whole!.length === 0) return null;
  return { tokens: effectivePart(tokens!), sequences: effectivePart(whole!) };
}

function effectivePart(logWeights: readonly number[]): number {
  // The size does not depend on their scale, and the product over a long sequence may overflow.
  const most = logWeights.reduce((a, b) => Math.max(a, b), -Infinity);
  let [sum, squares] = [0, 0];
  for (const logWeight of logWeights) {
    const weight = Math.exp(logWeight - most);
    sum += weight;
    squares += weight * weight;
  }
  return (sum * sum) / (squares * logWeights.length);
}
