import type { Json } from '../core/json/json.ts';
import type { ChatMessage, ToolDescription } from '../engine/dialect/contract.ts';
import { refuse } from './problem.ts';

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

/** Lists and objects within each other; digests and stored turns are made by recursion. */
const MOST_DEPTH = 500;

/** Throws Problem(400) for what is deeper, in the words of who reads it. */
export function assertShallow(given: unknown, field: string, what: string): void {
  let level = [given];
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > MOST_DEPTH)
      refuse(field, `${what} more than ${MOST_DEPTH} lists or objects within each other`);
    level = level.flatMap((one) =>
      typeof one === 'object' && one !== null ? (Object.values(one) as unknown[]) : [],
    );
  }
}

/** The arguments of a call as APIs write them: text that should be JSON. Throws Problem(400) for one that is too deep. */
export function argumentsOf(text: string): Json {
  let given: Json;
  try {
    given = JSON.parse(text) as Json;
  } catch {
    return text;
  }
  assertShallow(given, 'arguments', 'of a call have');
  return given;
}
