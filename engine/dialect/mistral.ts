import type { ToolCall } from '../../core/episode/episode.ts';
import type { Json } from '../../core/json/json.ts';
import type { Tokenizer } from '../tokenizer/tokenizer.ts';
import type { ChatMessage, Dialect, WrittenTurn } from './contract.ts';
import type { Guard } from './guard.ts';
import { parseJsonCall, readJson } from './json-call.ts';
import { actionOf, spokenOf } from './spoken-turn.ts';
import type { ReadTurn } from './spoken-turn.ts';
import { callId } from './template/template-frame.ts';
import type { TemplateFrame } from './template/template-frame.ts';
import { withEnd, withoutEnd } from './turn-end.ts';
import { assertOneAction, assertPlain, callJson, callsOf, readBack, turnTokensOf } from './written-turn.ts';

const CALLS = '[TOOL_CALLS]';
const ARGS = '[ARGS]';
const SPECIAL = /\[\/?(?:INST|AVAILABLE_TOOLS|TOOL_RESULTS|TOOL_CALLS|ARGS|CALL_ID|SYSTEM_PROMPT)\]/u;
/** What Mistral's templates demand of the id of a call. */
const ID = /^[A-Za-z0-9]{9}$/;

/**
 * What Mistral's models speak: perhaps text, and then `[TOOL_CALLS][{"name": …, "arguments": {…}}, …]`, or, since 2025, a
 * `[TOOL_CALLS]name[ARGS]{…}` for each call. A turn without it is the answer. A result names its call by an id where the
 * template writes one: by that of the turn, or else by the place of the call.
 */
export function mistralDialect(
  tokenizer: Tokenizer,
  guard: Guard,
  frame: TemplateFrame,
  turnEnds: readonly string[],
): Dialect {
  frame.assertSplits();
  const opening = frame.betweenTagAndCall(CALLS);
  const read = (text: string): ReadTurn => readMistral(withoutEnd(text, turnEnds)).turn;
  const idsIn = (turn: string): string[] => readMistral(withoutEnd(turn, turnEnds)).ids;
  const turnText = (turn: WrittenTurn): string => {
    assertOneAction(turn);
    const { answer, raw } = turn;
    if (raw !== undefined) return withEnd(raw, turnEnds);
    const calls = callsOf(turn);
    const action =
      calls.length > 0 ? written(calls, opening, frame, guard) : assertPlain(answer!, guard, SPECIAL);
    return readBack(turn, action + turnEnds[0]!, (text, most) => actionOf(read(text), most));
  };
  const messageTokens = (messages: readonly ChatMessage[], turn: string): number[] =>
    frame.messageTokens(messages, idsIn(turn));
  return {
    name: 'mistral',
    promptTokens: (messages) => frame.promptTokens(messages),
    observationTokens: ({ text }, turn) => messageTokens([{ role: 'tool', content: text }], turn),
    messageTokens,
    stopTokens: turnEnds.map((token) => tokenizer.idOf(token)),
    parse: (text, mostCalls) => actionOf(read(text), mostCalls),
    read: (text) => spokenOf(read(text)),
    canWrite: () => true,
    turnText,
    turnTokens: (turn) => turnTokensOf(tokenizer, turnText(turn)),
  };
}

/** A turn without its end token, and the ids that it gives its calls, where each has one. */
export function readMistral(text: string): { turn: ReadTurn; ids: string[] } {
  const [said, ...pieces] = text.split(CALLS);
  const calls: ToolCall[] = [];
  const ids: string[] = [];
  const none = (problem: string): { turn: ReadTurn; ids: string[] } => ({ turn: { problem }, ids: [] });
  for (const piece of pieces) {
    const found = callsIn(piece.trim());
    if (typeof found === 'string') return none(found);
    for (const { call, id } of found) {
      calls.push(call);
      if (id !== undefined) ids.push(id);
    }
  }
  const stray = SPECIAL.exec(said!)?.[0];
  if (stray !== undefined) return none(`unexpected ${stray}`);
  return {
    turn: { thought: '', text: said!.trim(), calls },
    ids: ids.length === calls.length && new Set(ids).size === ids.length ? ids : [],
  };
}

/** The calls behind one tag, or why they are none. */
function callsIn(piece: string): { call: ToolCall; id?: string }[] | string {
  const named = /^(?<name>[^[\]{}\s]+)(?:\[CALL_ID\](?<id>[^[\]{}\s]*))?\[ARGS\](?<given>.*)$/su.exec(
    piece,
  )?.groups;
  if (named) {
    const { name, id, given } = named as { name: string; id?: string; given: string };
    const json = readJson(given);
    if (json === undefined) return 'call is not JSON';
    return one({ name, arguments: json, ...(id !== undefined && { id }) });
  }
  const json = readJson(piece);
  if (json === undefined) return 'call is not JSON';
  if (!Array.isArray(json)) return one(json);
  if (json.length === 0) return `no call behind ${CALLS}`;
  const all: { call: ToolCall; id?: string }[] = [];
  for (const each of json) {
    const found = one(each);
    if (typeof found === 'string') return found;
    all.push(...found);
  }
  return all;
}

function one(json: Json): { call: ToolCall; id?: string }[] | string {
  const action = parseJsonCall(JSON.stringify(json), ['arguments']);
  if (action.kind !== 'call') return action.kind === 'malformed' ? action.reason : 'call is not an object';
  const { id } = json as { id?: Json };
  return [{ call: action.call, ...(typeof id === 'string' && ID.test(id) && { id }) }];
}

/** Calls as the template writes them, what stands before a name included. */
function written(
  calls: readonly ToolCall[],
  opening: string,
  frame: Pick<TemplateFrame, 'betweenCalls' | 'namesCalls'>,
  guard: Guard,
): string {
  const several = calls.length > 1;
  if (!opening.includes('{')) {
    const each = calls.map(
      ({ name, arguments: given }) =>
        `${CALLS}${opening}${assertPlain(name, guard, SPECIAL)}${ARGS}${callJson(given as object, guard, SPECIAL)}`,
    );
    return each.join(several ? frame.betweenCalls('}', CALLS) : '');
  }
  const space = opening.slice(0, opening.indexOf('['));
  // One call is written without its id, and is known by its place.
  const named = several && frame.namesCalls;
  const each = calls.map(({ name, arguments: given }, i) =>
    callJson({ name, arguments: given, ...(named && { id: callId(i) }) }, guard, SPECIAL),
  );
  return `${CALLS}${space}[${each.join(several ? frame.betweenCalls('}', '{') : '')}]`;
}
