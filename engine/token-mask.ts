import type { ModelConfig } from '../core/model/config.ts';

/** Far below every logit, and finite: products with it are numbers. In float32 a logit and this are this. */
export const MASKED = -1e30;

/**
 * What is added to the logits [V]: 0, and for tokens that the model must neither draw nor give any probability a number
 * so low that its exponential is 0. Undefined where there are none, so that nothing is computed for it.
 */
export function tokenMask({ vocabSize, maskedTokens }: ModelConfig): Float32Array | undefined {
  if (maskedTokens === undefined) return undefined;
  const mask = new Float32Array(vocabSize);
  for (const [from, to] of maskedTokens) mask.fill(MASKED, from, to);
  return mask;
}
