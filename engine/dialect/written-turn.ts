import { GradusError } from '../../core/errors.ts';
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

/** JSON as Python writes it, which can spell a tag without writing it. */
export function callJson(json: object, guard: Guard, tags: RegExp): string {
  const text = pythonJsonOf(json);
  const found = guard.find(text) ?? tags.exec(text)?.[0];
  return found === undefined ? text : assertPlain(text.replaceAll('<', '\\u003c'), guard, tags);
}

export function unwritable(message: string): GradusError {
  return new GradusError('environment', 'demonstration', message);
}
