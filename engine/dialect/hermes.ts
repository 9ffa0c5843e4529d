import type { Action } from '../../core/episode/episode.ts';
import type { DialectSpec } from '../../core/schema/dialect.ts';
import type { Tokenizer } from '../tokenizer/tokenizer.ts';
import type { Dialect, SpokenTurn, WrittenTurn } from './contract.ts';
import type { Guard } from './guard.ts';
import { parseJsonCall } from './json-call.ts';
import { malformed } from './malformed.ts';
import { actionOf } from './spoken-turn.ts';
import type { ReadTurn } from './spoken-turn.ts';
import type { TemplateFrame } from './template/template-frame.ts';
import { splitThought } from './thought.ts';
import { withEnd, withoutEnd } from './turn-end.ts';
import { assertOneAction, assertPlain, callJson, callsOf, readBack, turnTokensOf } from './written-turn.ts';

const OPEN = '<tool_call>';
const CLOSE = '</tool_call>';
const TAGS = /<\/?(?:tool_call|tool_response|think)>/u;
const RESPONSE = /<\/?tool_response>/u;

/**
 * What Hermes 2 Pro introduced and Qwen2.5 and Qwen3 speak: an optional thought, optional text, then a
 * `<tool_call>` with JSON in it for each call; a turn without a call is the answer.
 */
export function hermesDialect(
  tokenizer: Tokenizer,
  guard: Guard,
  frame: TemplateFrame,
  turnEnds: readonly string[],
  { thinking }: Pick<DialectSpec, 'thinking'>,
): Dialect {
  frame.assertSplits();
  const opened = frame.opensThought;
  const parse = (text: string, mostCalls = 1): Action => {
    const turn = withoutEnd(text, turnEnds);
    return mostCalls === 1 ? parseHermes(turn, opened) : parseCalls(turn, opened, mostCalls);
  };
  const turnText = (turn: WrittenTurn): string => {
    assertOneAction(turn);
    const { think, answer, raw } = turn;
    if (raw !== undefined) return withEnd(raw, turnEnds);
    const plain = (text: string): string => assertPlain(text, guard, TAGS);
    const thought =
      think === undefined || thinking === false
        ? opened
          ? '\n</think>\n\n'
          : ''
        : `${opened ? '' : '<think>\n'}${plain(think)}\n</think>\n\n`;
    const calls = callsOf(turn).map(
      (call) => `${OPEN}\n${callJson({ name: call.name, arguments: call.arguments }, guard, TAGS)}\n${CLOSE}`,
    );
    const between = calls.length > 1 ? frame.betweenCalls(CLOSE, OPEN) : '';
    const action = calls.length > 0 ? calls.join(between) : plain(answer!);
    return readBack(turn, thought + action + turnEnds[0]!, parse);
  };
  return {
    name: 'hermes',
    promptTokens: (messages) => frame.promptTokens(messages),
    observationTokens: ({ text }) => frame.observationTokens(text),
    messageTokens: (messages) => frame.messageTokens(messages),
    stopTokens: turnEnds.map((token) => tokenizer.idOf(token)),
    parse,
    read: (text) => readHermes(withoutEnd(text, turnEnds), opened),
    canWrite: () => true,
    turnText,
    turnTokens: (turn) => turnTokensOf(tokenizer, turnText(turn)),
  };
}

/** Reads a turn without its end token. Several calls in a turn are refused, because one was asked for. */
export function parseHermes(text: string, opened = false, mostCalls = 1): Action {
  const thought = splitThought(text, opened);
  if ('problem' in thought) return malformed(thought.problem);
  const { rest } = thought;
  const response = RESPONSE.exec(rest)?.[0];
  const start = rest.indexOf(OPEN);
  if (start < 0) {
    if (rest.includes(CLOSE)) return malformed(`unexpected ${CLOSE}`);
    if (response !== undefined) return malformed(`${response} is for tools to write`);
    const answer = rest.trim();
    return answer === '' ? malformed('no call and no answer') : { kind: 'answer', answer };
  }
  const end = rest.indexOf(CLOSE, start);
  if (end < 0) return malformed(`unclosed ${OPEN}`);
  const content = rest.slice(start + OPEN.length, end);
  if (content.includes(OPEN)) return malformed(`${OPEN} inside ${OPEN}`);
  const after = rest.slice(end + CLOSE.length);
  if (after.includes(OPEN)) return malformed('one call a turn');
  if (response !== undefined) return malformed(`${response} is for tools to write`);
  if (after.trim() !== '') return malformed(`text after ${CLOSE}`);
  if (rest.slice(0, start).includes(CLOSE)) return malformed(`unexpected ${CLOSE}`);
  return parseJsonCall(content, ['arguments'], mostCalls);
}

/** The same where a turn may have so many. */
function parseCalls(text: string, opened: boolean, mostCalls: number): Action {
  const read = readCalls(text, opened, mostCalls);
  const forged = 'problem' in read ? undefined : RESPONSE.exec(read.text)?.[0];
  return forged === undefined ? actionOf(read, mostCalls) : malformed(`${forged} is for tools to write`);
}

/** As `Dialect.read` gives it. */
export function readHermes(text: string, opened = false): SpokenTurn | undefined {
  const read = readCalls(text, opened);
  return 'problem' in read || (read.calls.length === 0 && read.text === '') ? undefined : read;
}

/** A turn without its end token, with all of its calls; nothing but white space may stand between and after them. */
function readCalls(text: string, opened: boolean, mostCalls = 1): ReadTurn {
  const thought = splitThought(text, opened);
  if ('problem' in thought) return thought;
  const { rest } = thought;
  const first = rest.indexOf(OPEN);
  const said = first < 0 ? rest : rest.slice(0, first);
  if (said.includes(CLOSE)) return { problem: `unexpected ${CLOSE}` };
  // Each call by the rules for one: what is wrong in it is wrong here.
  const pieces = first < 0 ? [] : rest.slice(first).split(/(?=<tool_call>)/u);
  const calls = pieces.map((piece) => parseHermes(piece, false, mostCalls));
  const wrong = calls.find((one) => one.kind === 'malformed');
  if (wrong) return { problem: wrong.reason };
  return {
    thought: text
      .slice(0, text.length - rest.length)
      .replaceAll(/<\/?think>/gu, '')
      .trim(),
    text: said.trim(),
    calls: calls.flatMap((one) => (one.kind === 'call' ? [one.call] : [])),
  };
}
