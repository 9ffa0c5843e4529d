import { messageOf } from '../../core/errors.ts';
import type { Tokenizer } from '../tokenizer/tokenizer.ts';
import type { Dialect, WrittenTurn } from './contract.ts';
import type { Guard } from './guard.ts';
import { looksLikeCalls, pythonCall, readPythonCalls } from './python-calls.ts';
import { actionOf, spokenOf } from './spoken-turn.ts';
import type { ReadTurn } from './spoken-turn.ts';
import type { TemplateFrame } from './template/template-frame.ts';
import { withEnd, withoutEnd } from './turn-end.ts';
import { assertOneAction, assertPlain, callsOf, readBack, turnTokensOf, unwritable } from './written-turn.ts';

/** Llama 4 writes calls between the first two, Llama 3 behind the third. */
const START = '<|python_start|>';
const END = '<|python_end|>';
const TAG = '<|python_tag|>';
const SPECIAL =
  /<\|(?:python_(?:start|end|tag)|(?:start|end)_header_id|header_(?:start|end)|begin_of_text)\|>/u;

/**
 * Calls as Python writes them, which Llama 3.2 and 4 speak where they are told so, and models trained for calls of several
 * tools: a turn is nothing but `[f(a=1, b='x'), g()]`; any other turn is the answer.
 */
export function pythonicDialect(
  tokenizer: Tokenizer,
  guard: Guard,
  frame: TemplateFrame,
  turnEnds: readonly string[],
): Dialect {
  frame.assertSplits();
  const read = (text: string): ReadTurn => readPythonic(withoutEnd(text, turnEnds));
  const turnText = (turn: WrittenTurn): string => {
    assertOneAction(turn);
    const { answer, raw } = turn;
    if (raw !== undefined) return withEnd(raw, turnEnds);
    const calls = callsOf(turn).map(written);
    const between = calls.length > 1 ? frame.betweenCalls(')', '') : '';
    const action = calls.length > 0 ? `[${calls.join(between)}]` : answer!;
    return readBack(turn, assertPlain(action, guard, SPECIAL) + turnEnds[0]!, (text, most) =>
      actionOf(read(text), most),
    );
  };
  return {
    name: 'pythonic',
    promptTokens: (messages) => frame.promptTokens(messages),
    observationTokens: ({ text }) => frame.observationTokens(text),
    messageTokens: (messages) => frame.messageTokens(messages),
    stopTokens: turnEnds.map((token) => tokenizer.idOf(token)),
    parse: (text, mostCalls) => actionOf(read(text), mostCalls),
    read: (text) => spokenOf(read(text)),
    canWrite: (turn) => callsOf(turn).every((call) => pythonCall({ ...call, arguments: {} }) !== undefined),
    turnText,
    turnTokens: (turn) => turnTokensOf(tokenizer, turnText(turn)),
  };
}

/** Reads a turn without its end token. */
export function readPythonic(text: string): ReadTurn {
  const body = untagged(text.trim());
  const stray = SPECIAL.exec(body)?.[0];
  if (stray !== undefined) return { problem: `unexpected ${stray}` };
  if (!looksLikeCalls(body)) return { thought: '', text: body, calls: [] };
  const calls = readPythonCalls(body);
  return typeof calls === 'string' ? { problem: calls } : { thought: '', text: '', calls };
}

function untagged(text: string): string {
  if (text.startsWith(TAG)) return text.slice(TAG.length).trim();
  if (text.startsWith(START) && text.endsWith(END)) return text.slice(START.length, -END.length).trim();
  return text;
}

function written(call: NonNullable<WrittenTurn['call']>): string {
  let text: string | undefined;
  try {
    text = pythonCall(call);
  } catch (error) {
    throw unwritable(`The arguments of a call cannot be written: ${messageOf(error)}.`);
  }
  if (text === undefined)
    throw unwritable(
      `A call of ${call.name} has a name that Python has none for: use letters, digits and _, and an object as arguments.`,
    );
  return text;
}
