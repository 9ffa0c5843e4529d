import type { Observation } from '../../../core/episode/episode.ts';
import type { Tokenizer } from '../../tokenizer/tokenizer.ts';
import type { ChatMessage, WrittenTurn } from '../contract.ts';
import { assertOneAction, readBack, turnTokensOf, unwritable } from '../written-turn.ts';
import { parseAction } from './parse-action.ts';
import { findSpecialToken, MESSAGE_END, MESSAGE_START, TAGS } from './special-tokens.ts';

/** ChatML: the user's message, and the assistant's opened. */
export function promptText(prompt: string): string {
  return `${MESSAGE_START}user\n${prompt}${MESSAGE_END}\n${MESSAGE_START}assistant\n`;
}

/** As `promptText`, but special tokens that a message spells stay plain text. */
export function promptTokens(tokenizer: Tokenizer, messages: readonly ChatMessage[]): number[] {
  const start = tokenizer.idOf(MESSAGE_START);
  const end = [tokenizer.idOf(MESSAGE_END), ...tokenizer.encodePlain('\n')];
  return [
    ...messages.flatMap(({ role, content }) => [
      start,
      ...tokenizer.encodePlain(`${role}\n${content}`),
      ...end,
    ]),
    start,
    ...tokenizer.encodePlain('assistant\n'),
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
 * no reader could tell from the real one, for what reads as something else, and when it has not exactly one of `call`, `answer` and `raw`.
 */
export function turnText(turn: WrittenTurn): string {
  assertOneAction(turn);
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
