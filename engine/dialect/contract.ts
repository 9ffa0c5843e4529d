import type { Action, Observation, ToolCall } from '../../core/episode/episode.ts';
import type { Json } from '../../core/json/json.ts';
import type { DialectName } from '../../core/names.ts';

/** A tool as a prompt describes it. `parameters` is the JSON Schema of its arguments. */
export interface ToolDescription {
  name: string;
  description: string;
  parameters: { [key: string]: Json };
}

/** A message of a conversation, in the form that chat templates read. */
export interface ChatMessage {
  role: 'system' | 'user' | 'assistant' | 'tool';
  content: string;
  reasoning_content?: string;
  tool_calls?: { type: 'function'; id?: string; function: { name: string; arguments: Json } }[];
  /** Of a tool's message: the tool. */
  name?: string;
  tool_call_id?: string;
}

/** A turn to be written for the policy; a demonstration's turn is one. Exactly one of `call`, `calls`, `answer` and `raw`. */
export interface WrittenTurn {
  think?: string;
  call?: { name: string; arguments: Json };
  /** Two or more, in order: several calls in one turn, in the dialects that have them. */
  calls?: readonly ToolCall[];
  answer?: string;
  raw?: string;
}

/** A turn with all that is in it, as messages of chat interfaces have it. */
export interface SpokenTurn {
  /** Empty where there is none. */
  thought: string;
  /** What is said beside the calls; empty where there is nothing. */
  text: string;
  calls: ToolCall[];
}

/**
 * How a policy is spoken to and understood: what it reads as prompt and as tool result, where its turns end, and what
 * its turns ask for. Bound to a tokenizer and to the tools of an environment; a pure function of both. All it makes
 * are token ids: what is sampled is appended as it was sampled, and what a dialect renders is tokenized once.
 */
export interface Dialect {
  readonly name: DialectName;
  /** What the policy reads before its first turn, the opening of that turn included. */
  promptTokens(messages: readonly ChatMessage[]): number[];
  /**
   * What lies between the end of a policy's turn and its next turn, whose opening is included. Masked out. `turn`: the
   * text that it follows, for dialects whose turns may have ended the message or not.
   */
  observationTokens(observation: Pick<Observation, 'text'>, turn: string): number[];
  /**
   * As `observationTokens`, where these messages lie in between: results of all the turn's calls, or what a user says. Throws
   * GradusError('policy', 'chat-template') where the checkpoint's template has no place for them.
   */
  messageTokens(messages: readonly ChatMessage[], turn: string): number[];
  /** Sampling one of these ends a turn of the policy; it belongs to the turn. */
  readonly stopTokens: readonly number[];
  /**
   * For dialects whose turns end with text that is no token of its own: whether a turn is over. It must stay true for
   * whatever follows. A turn is cut after the first token that makes it true.
   */
  isOver?(text: string): boolean;
  /**
   * What a turn asks for. Never throws: what does not parse is `malformed`, with a reason that the policy can learn from; so
   * is a turn with more than `mostCalls` calls, 1 unless given. Dialects whose turns end with a call know no more than one.
   */
  parse(text: string, mostCalls?: number): Action;
  /**
   * A turn with its thought, and with several calls in the dialects that have them; undefined for what does not parse. Absent:
   * `parse` says all there is.
   */
  read?(text: string): SpokenTurn | undefined;
  /** Whether this dialect can express a turn; one without names cannot call any tool. */
  canWrite(turn: WrittenTurn): boolean;
  /**
   * A turn as the policy would sample it, all of it masked in; `parse` reads it back. `raw` is written as it stands.
   * Throws GradusError('environment', 'demonstration') for what would read as something else, and for several calls where the
   * dialect has one a turn.
   */
  turnText(turn: WrittenTurn): string;
  turnTokens(turn: WrittenTurn): number[];
}
