import type { Action, ToolCall } from '../../core/episode/episode.ts';
import type { Tokenizer } from '../tokenizer/tokenizer.ts';
import type { Dialect, SpokenTurn, WrittenTurn } from './contract.ts';
import type { Guard } from './guard.ts';
import { parseJsonCall, readJson } from './json-call.ts';
import { malformed } from './malformed.ts';
import { actionOf } from './spoken-turn.ts';
import type { TemplateFrame } from './template/template-frame.ts';
import { withEnd, withoutEnd } from './turn-end.ts';
import { assertOneAction, assertPlain, callJson, callsOf, readBack, turnTokensOf } from './written-turn.ts';

const PYTHON_TAG = '<|python_tag|>';
const SPECIAL = /<\|(?:python_tag|start_header_id|end_header_id|begin_of_text)\|>/u;
/** What its models write between two calls, where the template has no turn with two. */
const BETWEEN = '; ';
/** How a call begins that is not where it should be. */
const CALL_LIKE = /\{\s*"(?:name|type)"\s*:/u;

/**
 * What Llama 3.1 and 3.2 speak: a turn that calls is nothing but `{"name": …, "parameters": {…}}`, optionally after
 * `<|python_tag|>`; results come from the `ipython` role; any other turn is the answer. An answer cannot begin with
 * `{`, which always means a call.
 */
export function llama3Dialect(
  tokenizer: Tokenizer,
  guard: Guard,
  frame: TemplateFrame,
  turnEnds: readonly string[],
): Dialect {
  frame.assertSplits();
  const parse = (text: string, mostCalls = 1): Action => parseCalls(withoutEnd(text, turnEnds), mostCalls);
  const turnText = (turn: WrittenTurn): string => {
    assertOneAction(turn);
    // There is no place for a thought: what the template writes for a turn that calls is the call alone.
    const { answer, raw } = turn;
    if (raw !== undefined) return withEnd(raw, turnEnds);
    const calls = callsOf(turn).map((call) =>
      callJson({ name: call.name, parameters: call.arguments }, guard, SPECIAL),
    );
    const between = calls.length > 1 ? frame.betweenCalls('}', '{', BETWEEN) : '';
    const action = calls.length > 0 ? calls.join(between) : assertPlain(answer!, guard, SPECIAL);
    return readBack(turn, action + turnEnds[0]!, parse);
  };
  return {
    name: 'llama3',
    promptTokens: (messages) => frame.promptTokens(messages),
    observationTokens: ({ text }) => frame.observationTokens(text),
    messageTokens: (messages) => frame.messageTokens(messages),
    stopTokens: turnEnds.map((token) => tokenizer.idOf(token)),
    parse,
    read: (text) => readLlama3(withoutEnd(text, turnEnds)),
    canWrite: () => true,
    turnText,
    turnTokens: (turn) => turnTokensOf(tokenizer, turnText(turn)),
  };
}

/** Reads a turn without its end token. Several calls in a turn are refused, because one was asked for. */
export function parseLlama3(text: string): Action {
  const [before, ...tagged] = text.split(PYTHON_TAG);
  if (tagged.length > 1) return malformed('one call a turn');
  if (tagged.length === 1 && before!.trim() !== '') return malformed(`text before ${PYTHON_TAG}`);
  const body = (tagged[0] ?? before!).trim();
  const stray = SPECIAL.exec(body)?.[0];
  if (stray !== undefined) return malformed(`unexpected ${stray}`);
  if (tagged.length === 0 && !body.startsWith('{') && !body.startsWith('[{')) {
    if (body === '') return malformed('no call and no answer');
    return CALL_LIKE.test(body)
      ? malformed('text before the call: a turn that calls is nothing but the call')
      : { kind: 'answer', answer: body };
  }
  const end = endOfObject(body);
  if (end === undefined) return parseJsonCall(body, ['parameters', 'arguments']);
  const after = body.slice(end).replace(/^[\s;,]+/u, '');
  if (after.startsWith('{')) return malformed('one call a turn');
  if (after !== '' || body.slice(end).trim() !== '') return malformed('text after the call');
  return parseJsonCall(body, ['parameters', 'arguments']);
}

/** The same where a turn may have so many. */
function parseCalls(text: string, mostCalls: number): Action {
  const one = parseLlama3(text);
  if (mostCalls === 1 || one.kind !== 'malformed') return one;
  const calls: ToolCall[] = [];
  for (const piece of callsIn(text)) {
    const each = parseLlama3(piece);
    if (each.kind === 'call') calls.push(each.call);
    else if (calls.length > 0 && !piece.startsWith('{')) return malformed('text after the call');
    else return each.kind === 'malformed' ? each : malformed('call is not an object');
  }
  return actionOf({ thought: '', text: '', calls }, mostCalls);
}

/**
 * A turn without its end token, with all of its calls: one after the other with `;`, `,` or white space between them, each after
 * a tag of its own or all after one, or as a list.
 */
export function readLlama3(text: string): SpokenTurn | undefined {
  const one = parseLlama3(text);
  if (one.kind === 'answer') return { thought: '', text: one.answer, calls: [] };
  const calls = (one.kind === 'call' ? [text] : callsIn(text)).map(parseLlama3);
  if (calls.length === 0 || calls.some(({ kind }) => kind !== 'call')) return undefined;
  return { thought: '', text: '', calls: calls.flatMap((each) => (each.kind === 'call' ? [each.call] : [])) };
}

/** The texts of the calls, each of which may be none: the last one is what is left where no other can be told apart. */
function callsIn(text: string): string[] {
  const untagged = (tagged: string): string => tagged.trim().replace(/^<\|python_tag\|>\s*/u, '');
  const body = untagged(text);
  if (body.startsWith('[')) {
    const list = readJson(body);
    return Array.isArray(list) ? list.map((one) => JSON.stringify(one)) : [body];
  }
  const calls: string[] = [];
  for (let rest = body; ;) {
    const end = endOfObject(rest);
    if (end === undefined) return [...calls, rest];
    calls.push(rest.slice(0, end));
    const after = rest.slice(end).trim();
    if (after === '') return calls;
    rest = untagged(after.replace(/^[;,]/u, ''));
  }
}

/** One past the brace that closes the object that a text begins with. */
function endOfObject(text: string): number | undefined {
  if (!text.startsWith('{')) return undefined;
  let depth = 0;
  let quoted = false;
  for (let i = 0; i < text.length; i++) {
    const letter = text[i];
    if (quoted) {
      if (letter === '\\') i++;
      else if (letter === '"') quoted = false;
    } else if (letter === '"') quoted = true;
    else if (letter === '{') depth++;
    else if (letter === '}' && --depth === 0) return i + 1;
  }
  return undefined;
}
