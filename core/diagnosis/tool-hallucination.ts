import type { Diagnosis } from './diagnosis.ts';
import { now } from './series.ts';

const UNKNOWN = 0.05;

/** The policy calls tools that there are not (seeds 004, 9.1): one call in twenty. */
export const toolHallucination: Diagnosis = {
  remedy:
    'Warm-start on demonstrations that name the tools, with negatives (Agent-FLAN), and let unknown tools cost something (tool-shaping); look whether the prompt lists the tools.',
  find(series) {
    const unknown = now(series, 'unknown');
    if (unknown === null || unknown < UNKNOWN) return null;
    return [{ what: 'part of calls to unknown tools', now: unknown, before: null, limit: UNKNOWN }];
  },
};
