import type { Diagnosis } from './diagnosis.ts';
import { tooHigh } from './lasting-rate.ts';

const LIMITS = { grown: 0.05, rise: 0.04, lasting: 0.05, severe: 0.5 };

/**
 * The policy calls tools that there are not: one call in twenty, and no fewer as it learns. A policy that begins with
 * many and drops them is learning its tools.
 */
export const toolHallucination: Diagnosis = {
  remedy:
    'Warm-start on demonstrations that name the tools, with negatives (Agent-FLAN), and let unknown tools cost something (tool-shaping); check whether the prompt lists the tools.',
  find: (series) => tooHigh(series, 'unknown', LIMITS, 'part of calls to unknown tools'),
};
