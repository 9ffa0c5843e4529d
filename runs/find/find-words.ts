import type { QueryName } from './find-query.ts';

/** What each word of a query is asked for, in forms and in the help of a command. */
export const WORDS: Record<QueryName, string> = {
  stage: 'of these stages or evaluations',
  environment: 'of tasks of these environments',
  level: 'of tasks of these levels',
  split: 'train, heldout or test',
  outcome: 'scored, truncated, abstained, pending or failed',
  success: 'yes, no or unknown',
  hint: 'yes: sampled with a hint, as hindsight has it; no: without one',
  'from-step': 'of this step or a later one',
  'to-step': 'of this step or an earlier one',
  'min-reward': 'whose reward is at least',
  'max-reward': 'whose reward is at most',
  'min-tokens': 'with at least so many sampled tokens',
  'max-tokens': 'with at most so many sampled tokens',
  'min-turns': 'with at least so many turns',
  'max-turns': 'with at most so many turns',
  tool: 'that called this tool',
  error: 'that got an error: any, malformed-call, unknown-tool, invalid-arguments or tool-error',
  text: 'in which this text stands, without regard to case; reads trajectories',
  sort: 'by step, reward, tokens, turns or tool-seconds',
  order: 'ascending or descending',
};
