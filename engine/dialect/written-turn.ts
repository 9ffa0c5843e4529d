import { isDeepStrictEqual } from 'node:util';
import type { Action } from '../../core/episode/episode.ts';
import { GradusError, messageOf } from '../../core/errors.ts';
import type { Tokenizer } from '../tokenizer/tokenizer.ts';
import type { WrittenTurn } from './contract.ts';
import type { Guard } from './guard.ts';
import { pythonJsonOf } from './template/python-json.ts';

/** Throws GradusError('environment', 'demonstration') unless a turn has exactly one of `call`, `answer` and `raw`. */
export function assertOneAction({ call, answer, raw }: WrittenTurn): void {
  if ([call, answer, raw].filter((part) => part !== undefined).length !== 1) {
    throw unwritable('A turn needs exactly one of call, answer and raw.');
  }
}

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
export function readBack(turn: WrittenTurn, text: string, parse: (text: string) => Action): string {
  const { call, answer, raw } = turn;
  if (raw !== undefined) return text;
  const action: Action = call ? { kind: 'call', call: { ...call } } : { kind: 'answer', answer: answer! };
  const read = parse(text);
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
