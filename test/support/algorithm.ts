import type { z } from 'zod';
import { algorithmSchema, planAlgorithm } from '../../core/algorithms/index.ts';
import type { BatchRequest } from '../../core/requests/batch.ts';
import type { SamplingSpec } from '../../core/schema/sampling.ts';
import type { TruncatedRule } from '../../core/episode/outcome.ts';

const SAMPLING: SamplingSpec = { temperature: 1, topK: 0, topP: 1, maxTurns: 8, maxCompletionTokens: 160 };

/** An algorithm with its defaults, and its plan, as a parsed stage has them. */
export function algorithmWith(written: z.input<typeof algorithmSchema>, sampling = SAMPLING) {
  const algorithm = algorithmSchema.parse(written);
  return { algorithm, plan: planAlgorithm(algorithm, sampling) };
}

/** What the credit of a step reads, where the reward is what is given as such. */
export const creditBy = (
  written: z.input<typeof algorithmSchema>,
  truncated: TruncatedRule = 'train',
): Pick<BatchRequest, 'algorithm' | 'plan' | 'reward'> => ({
  ...algorithmWith(written),
  reward: { components: [], truncated },
});
