import type { Action } from '../../core/episode.ts';
import type { Json } from '../../core/json.ts';
import { malformed } from './malformed.ts';

/**
 * `{"name": …, "<key>": {…}}` as models write calls. Arguments may come as a string of JSON, as in OpenAI's messages;
 * other fields (an id, a type) are passed over.
 */
export function parseJsonCall(content: string, keys: readonly string[]): Action {
  let json: Json;
  try {
    json = JSON.parse(content) as Json;
  } catch {
    return malformed('call is not JSON');
  }
  if (Array.isArray(json)) return malformed('one call a turn, not a list');
  if (!isObject(json)) return malformed('call is not an object');
  const { name } = json;
  if (typeof name !== 'string' || name === '') return malformed('call has no name');
  const key = keys.find((candidate) => Object.hasOwn(json, candidate));
  if (key === undefined) return malformed(`call has no ${keys[0]}`);
  let args: Json = json[key]!;
  if (typeof args === 'string') {
    try {
      args = JSON.parse(args) as Json;
    } catch {
      return malformed(`${key} are a string that is not JSON`);
    }
  }
  return isObject(args)
    ? { kind: 'call', call: { name, arguments: args } }
    : malformed(`${key} are not an object`);
}

function isObject(json: Json): json is { [key: string]: Json } {
  return typeof json === 'object' && json !== null && !Array.isArray(json);
}
