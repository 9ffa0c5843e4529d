import type { Action } from '../../core/episode.ts';
import type { Json } from '../../core/json.ts';
import { malformed } from './malformed.ts';

/**
 * `{"name": …, "<key>": {…}}` as models write calls. Arguments may come as a string of JSON, as in OpenAI's messages;
 * other fields (an id, a type) are passed over.
 */
export function parseJsonCall(content: string, keys: readonly string[]): Action {
  const json = readJson(content);
  if (json === undefined) return malformed('call is not JSON');
  if (Array.isArray(json)) return malformed('one call a turn, not a list');
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

/** Undefined for what is none, and for numbers that are too large to be one, such as 1e999. */
export function readJson(text: string): Json | undefined {
  try {
    const json = JSON.parse(text) as Json;
    return isFiniteJson(json) ? json : undefined;
  } catch {
    return undefined;
  }
}

const isFiniteJson = (json: Json): boolean =>
  typeof json === 'object' && json !== null
    ? Object.values(json).every(isFiniteJson)
    : typeof json !== 'number' || Number.isFinite(json);

function isObject(json: Json): json is { [key: string]: Json } {
  return typeof json === 'object' && json !== null && !Array.isArray(json);
}
