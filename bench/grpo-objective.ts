import type { TrainSettings } from '../engine/learner/contract.ts';

/** GRPO where only the time and memory of a step are measured. */
export const GRPO: Extract<TrainSettings['objective'], { kind: 'grpo' }> = {
  kind: 'grpo',
  temperature: 1,
  topK: 0,
  clipRatioLow: 0.2,
  clipRatioHigh: 0.28,
  beta: 0,
  aggregation: 'token',
  maxCompletionTokens: 80,
  importanceCap: 2,
};
