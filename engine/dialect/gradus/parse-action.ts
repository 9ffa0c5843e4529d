import type { Action } from '../../../core/episode/episode.ts';
import type { Json } from '../../../core/json/json.ts';
import { readJson } from '../json-call.ts';
import { malformed } from '../malformed.ts';
import { findSpecialToken, MESSAGE_END, TAGS } from './special-tokens.ts';

/**
 * Reads one turn of the policy: an optional `<think>…</think>`, then one `<tool_call>{"name":…,"arguments":{…}}</tool_call>`
 * or one `<answer>…</answer>`, and nothing else but white space. Never throws: what does not parse is `malformed`,
 * with a reason that tells the policy what to write instead.
 */
export function parseAction(text: string): Action {
  const ended = text.trimEnd().endsWith(MESSAGE_END);
  const body = ended ? text.trimEnd().slice(0, -MESSAGE_END.length) : text;
  const action = parseBody(body);
  return ended && action.kind === 'call' ? malformed('text after </tool_call>') : action;
}

function parseBody(text: string): Action {
  let rest = text.trim();
  const [thinkOpen, thinkClose] = TAGS.think;
  if (rest.startsWith(thinkOpen)) {
    const close = rest.indexOf(thinkClose);
    if (close < 0) return malformed('unclosed <think>');
    const inside = findSpecialToken(rest.slice(thinkOpen.length, close));
    if (inside !== undefined) return malformed(`${inside} inside <think>`);
    rest = rest.slice(close + thinkClose.length).trimStart();
  }
  if (rest === '') return malformed('no call and no answer');
  for (const kind of ['call', 'answer'] as const) {
    const [open, close] = TAGS[kind];
    if (!rest.startsWith(open)) continue;
    const end = rest.indexOf(close);
    if (end < 0) return malformed(`unclosed ${open}`);
    const content = rest.slice(open.length, end);
    const inside = findSpecialToken(content);
    if (inside !== undefined) return malformed(`${inside} inside ${open}`);
    const after = rest.slice(end + close.length);
    if (after.trimStart().startsWith(TAGS.call[0])) return malformed('one call a turn');
    if (after.trim() !== '') return malformed(`text after ${close}`);
    return kind === 'call' ? parseCall(content) : parseAnswer(content);
  }
  const next = findSpecialToken(rest);
  return next !== undefined && rest.startsWith(next)
    ? malformed(`unexpected ${next}`)
    : malformed('text outside tags');
}

function parseAnswer(answer: string): Action {
  return answer.trim() === '' ? malformed('empty answer') : { kind: 'answer', answer };
}

function parseCall(content: string): Action {
  const json = readJson(content);
  if (json === undefined) return malformed('call is not JSON');
  if (!isObject(json)) return malformed('call is not an object');
  const { name, arguments: args } = json;
  if (typeof name !== 'string' || name === '') return malformed('call has no name');
  if (args === undefined) return malformed('call has no arguments');
  if (!isObject(args)) return malformed('arguments are not an object');
  if (Object.keys(json).length > 2) return malformed('call has more than name and arguments');
  return { kind: 'call', call: { name, arguments: args } };
}

function isObject(json: Json): json is { [key: string]: Json } {
  return typeof json === 'object' && json !== null && !Array.isArray(json);
}
