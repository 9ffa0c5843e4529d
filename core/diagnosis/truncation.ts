import type { Diagnosis } from './diagnosis.ts';
import { tooHigh } from './lasting-rate.ts';

const LIMITS = { grown: 0.3, rise: 0.2, lasting: 0.5, severe: 0.5 };

/**
 * Half of the episodes are cut off by a limit of tokens or turns, and it gets no better: what they were about to do is
 * neither seen nor rewarded (DAPO, Yu et al. 2025, arXiv 2503.14476, section 3.4, on the noise that this brings).
 */
export const truncation: Diagnosis = {
  remedy:
    'Raise maxTurns or maxCompletionTokens if the tasks need more; otherwise shorten what tools return, warm-start on episodes that end, or penalize length (overlong shaping).',
  find: (series) => tooHigh(series, 'truncated', LIMITS, 'part of episodes cut off by a limit'),
};
