import type { TrainBatch } from '../contract.ts';

/** Where the tokens of a sequence stand that its mask counts. */
export function countedTokens(
  { offsets, mask }: Pick<TrainBatch, 'offsets' | 'mask'>,
  sequence: number,
): number[] {
  const tokens: number[] = [];
  for (let token = offsets[sequence]!; token < offsets[sequence + 1]!; token++) {
    if (mask[token] === 1) tokens.push(token);
  }
  return tokens;
}

/** A sum over them: for log-probs it is the log-prob of what the policy said in all turns. */
export const sumOver = (tokens: readonly number[], values: Float32Array): number =>
  tokens.reduce((sum, token) => sum + values[token]!, 0);
