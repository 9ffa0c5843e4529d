import type { Observation } from '../../../core/episode/episode.ts';
import type { Tokenizer } from '../../tokenizer/tokenizer.ts';
import type { ChatMessage, ToolDescription, WrittenTurn } from '../contract.ts';
import { assertOneAction, assertOneCall, readBack, turnTokensOf, unwritable } from '../written-turn.ts';
import { parseAction } from './parse-action.ts';
import { findSpecialToken, MESSAGE_END, MESSAGE_START, TAGS } from './special-tokens.ts';

/** ChatML: the user's message, and the assistant's opened. */
export function promptText(prompt: string): string {
  return `${MESSAGE_START}user\n${prompt}${MESSAGE_END}\n${MESSAGE_START}assistant\n`;
}

/** The same behind a system message with the tools. */
export function promptTextWithTools(prompt: string, described: readonly ToolDescription[]): string {
  const [system] = withTools([], described);
  return `${system ? `${MESSAGE_START}system\n${system.content}${MESSAGE_END}\n` : ''}${promptText(prompt)}`;
}

/** The messages with the tools in the system's, each a line of JSON; as they are where there is none. */
export function withTools(
  messages: readonly ChatMessage[],
  described: readonly ToolDescription[],
): readonly ChatMessage[] {
  if (described.length === 0) return messages;
  const lines = described.map(({ name, description, parameters }) =>
    JSON.stringify({ name, description, parameters }),
  );
  const tools = ['Tools:', ...lines].join('\n');
  const [first, ...rest] = messages;
  return first?.role === 'system'
    ? [{ ...first, content: `${first.content}\n\n${tools}` }, ...rest]
    : [{ role: 'system', content: tools }, ...messages];
}

/** As `promptText`, but special tokens that a message spells stay plain text. */
export const promptTokens = (tokenizer: Tokenizer, messages: readonly ChatMessage[]): number[] =>
  conversationTokens(tokenizer, messages, false);

/** What lies between a turn and the next one when these messages come in between: a result stays in the same message. */
export function messageTokens(
  tokenizer: Tokenizer,
  messages: readonly ChatMessage[],
  turn: string,
): number[] {
  if (!turn.trimEnd().endsWith(MESSAGE_END)) return conversationTokens(tokenizer, messages, true);
  return [...tokenizer.encodePlain('\n'), ...conversationTokens(tokenizer, messages, false)];
}

/** Messages up to the place where the assistant goes on. `inside`: they begin inside a message of the assistant. */
function conversationTokens(
  tokenizer: Tokenizer,
  messages: readonly ChatMessage[],
  inside: boolean,
): number[] {
  const end = [tokenizer.idOf(MESSAGE_END), ...tokenizer.encodePlain('\n')];
  const opened = (role: string, content = ''): number[] => [
    tokenizer.idOf(MESSAGE_START),
    ...tokenizer.encodePlain(`${role}\n${content}`),
  ];
  let open = inside;
  const tokens = messages.flatMap((message) => {
    const { role, content } = message;
    if (role === 'tool' && open) return observationTokens(tokenizer, { text: content });
    const before = open && role !== 'assistant' ? end : [];
    const begins = !open;
    open = role === 'assistant';
    if (!open) return [...before, ...opened(role, content), ...end];
    return [...(begins ? opened(role) : []), ...saidTokens(tokenizer, message)];
  });
  return open && messages.at(-1)?.role === 'tool'
    ? tokens
    : [...tokens, ...(open ? end : []), ...opened('assistant')];
}

/** What an assistant is said to have written; text that no turn could hold stays plain. */
function saidTokens(tokenizer: Tokenizer, { content, tool_calls: calls = [] }: ChatMessage): number[] {
  const written = calls.map(({ function: call }) => turnTokens(tokenizer, { call }));
  if (content === '') return written.flat();
  const isAnswer = calls.length === 0 && findSpecialToken(content) === undefined && content.trim() !== '';
  return [
    ...(isAnswer ? turnTokens(tokenizer, { answer: content }) : tokenizer.encodePlain(content)),
    ...written.flat(),
  ];
}

/** What is appended to an episode after a call; special tokens that a tool spells stay plain text. */
export function observationTokens(tokenizer: Tokenizer, observation: Pick<Observation, 'text'>): number[] {
  const [open, close] = TAGS.observation;
  return [tokenizer.idOf(open), ...tokenizer.encodePlain(observation.text), tokenizer.idOf(close)];
}

/**
 * A turn as the policy would write it; `parseAction` reads it back. `raw` is written as it stands.
 * Throws GradusError('environment', 'demonstration') for a thought or an answer that spells a special token, which
 * no reader could tell from the real one, for what reads as something else, for several calls, and when it has not exactly one of
 * `call`, `answer` and `raw`.
 */
export function turnText(turn: WrittenTurn): string {
  assertOneAction(turn);
  assertOneCall('gradus', turn);
  const think = turn.think === undefined ? '' : inside('think', turn.think);
  return readBack(turn, think + actionText(turn), parseAction);
}

function actionText({ call, answer, raw }: WrittenTurn): string {
  if (call !== undefined) {
    const json = JSON.stringify({ name: call.name, arguments: call.arguments });
    // JSON can spell a tag without writing it.
    const safe = findSpecialToken(json) === undefined ? json : json.replaceAll('<', '\\u003c');
    return inside('call', safe);
  }
  return answer === undefined ? raw! : inside('answer', answer);
}

export function turnTokens(tokenizer: Tokenizer, turn: WrittenTurn): number[] {
  return turnTokensOf(tokenizer, turnText(turn));
}

/** Sampling one of these ends a turn of the policy. */
export function stopTokens(tokenizer: Tokenizer): number[] {
  return [TAGS.call[1], TAGS.answer[1], MESSAGE_END].map((token) => tokenizer.idOf(token));
}

function inside(kind: keyof typeof TAGS, content: string): string {
  const token = findSpecialToken(content);
  if (token !== undefined)
    throw unwritable(`The text inside ${TAGS[kind][0]} spells ${token}; leave it out.`);
  return TAGS[kind][0] + content + TAGS[kind][1];
}
