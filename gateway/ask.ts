import type { Json } from '../core/json/json.ts';
import type { ChatMessage, ToolDescription } from '../engine/dialect/contract.ts';

/** A request for a turn, whatever API it came by. */
export interface Ask {
  model: string;
  messages: ChatMessage[];
  tools: ToolDescription[];
  /** Tokens that the agent wants at most; absent: whatever there is room for. */
  maxTokens?: number;
  stream: boolean;
  /** Whether a stream ends with what was used. */
  streamsUsage?: boolean;
  logprobs?: boolean;
  /** The answer that these messages follow, where the agent leaves out what went before. */
  previous?: string;
}

/** The arguments of a call as APIs write them: text that should be JSON. */
export function argumentsOf(text: string): Json {
  try {
    return JSON.parse(text) as Json;
  } catch {
    return text;
  }
}
