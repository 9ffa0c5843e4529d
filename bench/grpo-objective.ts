import type { ClippedObjective } from '../core/algorithms/objective.ts';

/** GRPO where only the time and memory of a step are measured. */
export const GRPO: ClippedObjective = {
  kind: 'clipped',
  temperature: 1,
  topK: 0,
  clipRatioLow: 0.2,
  clipRatioHigh: 0.28,
  beta: 0,
  aggregation: 'token',
  maxCompletionTokens: 80,
  importanceCap: 2,
};
