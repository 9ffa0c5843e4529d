import type { Diagnosis } from './diagnosis.ts';
import { tooHigh } from './lasting-rate.ts';

const LIMITS = { grown: 0.3, rise: 0.2, lasting: 0.5, severe: 0.5 };

/**
 * Half of the turns end in an error, and it gets no better: calls that do not parse, arguments that a tool refuses, and
 * tools that fail. Unknown tools are an alarm of their own. Some errors belong to the work (a test that fails, a page
 * that is not there), so only a majority, or a large rise, is an alarm.
 */
export const toolErrors: Diagnosis = {
  remedy:
    'Read some episodes: which error is it? Warm-start on demonstrations of the call format, describe the tools and their arguments in the prompt, and check whether the tool itself is broken or its time limit too short.',
  find: (series) => tooHigh(series, 'errors', LIMITS, 'part of turns that ended in an error'),
};
