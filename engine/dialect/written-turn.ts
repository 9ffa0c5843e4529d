import { isDeepStrictEqual } from 'node:util';
import type { Action, ToolCall } from '../../core/episode/episode.ts';
import { GradusError, messageOf } from '../../core/errors.ts';
import type { DialectName } from '../../core/names.ts';
import { SEVERAL_CALLS } from '../../core/schema/dialect.ts';
import type { Tokenizer } from '../tokenizer/tokenizer.ts';
import type { WrittenTurn } from './contract.ts';
import type { Guard } from './guard.ts';
import { pythonJsonOf } from './template/python-json.ts';

/** Throws GradusError('environment', 'demonstration') unless a turn has exactly one of `call`, `calls`, `answer` and `raw`. */
export function assertOneAction({ call, calls, answer, raw }: WrittenTurn): void {
  if ([call, calls, answer, raw].filter((part) => part !== undefined).length !== 1) {
    throw unwritable('A turn needs exactly one of call, calls, answer and raw.');
  }
  if (calls && calls.length < 2)
    throw unwritable('The calls of a turn are two or more: give one as its call.');
}

/** Throws GradusError('environment', 'demonstration') for several calls, in a dialect whose turn ends with the first. */
export function assertOneCall(name: DialectName, { calls }: Pick<WrittenTurn, 'calls'>): void {
  if (calls)
    throw unwritable(
      `A turn of ${name} ends with its call, and one with ${calls.length} calls cannot be written: write a turn for each call, or take ${SEVERAL_CALLS.join(', ')} as model.dialect.`,
    );
}

/** The calls of a turn, as a reader understands them; without one, those of an answer. */
export const callsOf = ({ call, calls }: WrittenTurn): readonly ToolCall[] => (call ? [call] : (calls ?? []));

/** Throws GradusError('environment', 'demonstration') for text that no reader could tell from a tag or a special token. */
export function assertPlain(text: string, guard: Guard, tags: RegExp): string {
  const found = guard.find(text) ?? tags.exec(text)?.[0];
  if (found !== undefined) throw unwritable(`The text of a turn spells ${found}; leave it out.`);
  return text;
}

/**
 * The text of a turn, if it reads as what the turn says; `raw` reads as it may.
 * Throws GradusError('environment', 'demonstration') where a policy that learnt it would have said something else.
 */
export function readBack(
  turn: WrittenTurn,
  text: string,
  parse: (text: string, mostCalls: number) => Action,
): string {
  const { call, calls, answer, raw } = turn;
  if (raw !== undefined) return text;
  const action: Action = call
    ? { kind: 'call', call: { ...call } }
    : calls
      ? { kind: 'calls', calls: calls.map((one) => ({ ...one })) }
      : { kind: 'answer', answer: answer! };
  const read = parse(text, calls?.length ?? 1);
  if (isDeepStrictEqual(read, action)) return text;
  throw unwritable(
    `A turn that says ${shown(action)} would read as ${shown(read)}: word it otherwise, without white space around it.`,
  );
}

/**
 * The tokens of such a text. Throws GradusError('environment', 'demonstration') for text that no tokens spell: lone
 * surrogates, and what the tokenizer normalizes.
 */
export function turnTokensOf(tokenizer: Tokenizer, text: string): number[] {
  const tokens = tokenizer.encode(text);
  if (tokenizer.decode(tokens) === text) return tokens;
  throw unwritable(
    `The tokens of a turn spell another text than ${shown(text)}: leave out lone surrogates, and write letters with accents as one character (NFC).`,
  );
}

const shown = (value: unknown): string => {
  const json = JSON.stringify(value);
  return json.length > 200 ? `${json.slice(0, 200)}…` : json;
};

/** JSON as Python writes it, which can spell a tag without writing it. */
export function callJson(json: object, guard: Guard, tags: RegExp): string {
  let text: string;
  try {
    text = pythonJsonOf(json);
  } catch (cause) {
    throw unwritable(`The arguments of a call cannot be written: ${messageOf(cause)}.`);
  }
  const found = guard.find(text) ?? tags.exec(text)?.[0];
  return found === undefined ? text : assertPlain(text.replaceAll('<', '\\u003c'), guard, tags);
}

export function unwritable(message: string): GradusError {
  return new GradusError('environment', 'demonstration', message);
}
