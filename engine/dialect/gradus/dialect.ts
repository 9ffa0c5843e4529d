import type { Tokenizer } from '../../tokenizer/tokenizer.ts';
import type { Dialect, ToolDescription } from '../contract.ts';
import { parseAction } from './parse-action.ts';
import {
  messageTokens,
  observationTokens,
  promptTokens,
  stopTokens,
  turnText,
  turnTokens,
  withTools,
} from './render.ts';

/**
 * What models from scratch speak: every tag is one token, and nothing is said twice. Tools are learnt from
 * demonstrations; their descriptions are not in the prompt, which a small model would pay for in every episode, but for
 * those that are `described`.
 */
export function gradusDialect(tokenizer: Tokenizer, described: readonly ToolDescription[] = []): Dialect {
  return {
    name: 'gradus',
    promptTokens: (messages) => promptTokens(tokenizer, withTools(messages, described)),
    observationTokens: (observation) => observationTokens(tokenizer, observation),
    messageTokens: (messages, turn) => messageTokens(tokenizer, messages, turn),
    stopTokens: stopTokens(tokenizer),
    parse: parseAction,
    canWrite: ({ calls }) => calls === undefined,
    turnText,
    turnTokens: (turn) => turnTokens(tokenizer, turn),
  };
}
