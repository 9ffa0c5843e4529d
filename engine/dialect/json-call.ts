import type { Action } from '../../core/episode/episode.ts';
import type { Json } from '../../core/json/json.ts';
import { malformed } from './malformed.ts';

/**
 * `{"name": …, "<key>": {…}}` as models write calls. Arguments may come as a string of JSON, as in OpenAI's messages;
 * other fields (an id, a type) are passed over. `mostCalls`: of the turn, for what a policy is told.
 */
export function parseJsonCall(content: string, keys: readonly string[], mostCalls = 1): Action {
  const json = readJson(content);
  if (json === undefined) return malformed('call is not JSON');
  if (Array.isArray(json))
    return malformed(mostCalls === 1 ? 'one call a turn, not a list' : 'call is a list and not an object');
  if (!isObject(json)) return malformed('call is not an object');
  const { name } = json;
  if (typeof name !== 'string' || name === '') return malformed('call has no name');
  const key = keys.find((candidate) => Object.hasOwn(json, candidate));
  if (key === undefined) return malformed(`call has no ${keys[0]}`);
  let args: Json = json[key]!;
  if (typeof args === 'string') {
    const inner = readJson(args);
    if (inner === undefined) return malformed(`${key} are a string that is not JSON`);
    args = inner;
  }
  return isObject(args)
    ? { kind: 'call', call: { name, arguments: args } }
    : malformed(`${key} are not an object`);
}

/** Levels of arguments: what is read without a stack is written, checked and sent with one. */
const DEEPEST = 100;

/**
 * Undefined for what is none, for numbers that are too large to be one, such as 1e999, for text that is no Unicode (half a
 * surrogate pair), and for what is too deep.
 */
export function readJson(text: string): Json | undefined {
  try {
    const json = JSON.parse(text) as Json;
    return isPlainJson(json, DEEPEST) ? json : undefined;
  } catch {
    return undefined;
  }
}

function isPlainJson(json: Json, levels: number): boolean {
  if (typeof json === 'string') return isUnicode(json);
  if (typeof json !== 'object' || json === null) return typeof json !== 'number' || Number.isFinite(json);
  return (
    levels > 0 && Object.entries(json).every(([key, one]) => isUnicode(key) && isPlainJson(one, levels - 1))
  );
}

const isUnicode = (text: string): boolean => !/\p{Surrogate}/u.test(text);

function isObject(json: Json): json is { [key: string]: Json } {
  return typeof json === 'object' && json !== null && !Array.isArray(json);
}
