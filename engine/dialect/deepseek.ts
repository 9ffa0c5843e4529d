import type { ToolCall } from '../../core/episode/episode.ts';
import type { Tokenizer } from '../tokenizer/tokenizer.ts';
import type { Dialect, WrittenTurn } from './contract.ts';
import type { Guard } from './guard.ts';
import { parseJsonCall, readJson } from './json-call.ts';
import { actionOf, spokenOf } from './spoken-turn.ts';
import type { ReadTurn } from './spoken-turn.ts';
import type { TemplateFrame } from './template/template-frame.ts';
import { withEnd, withoutEnd } from './turn-end.ts';
import { assertOneAction, assertPlain, callJson, callsOf, readBack, turnTokensOf } from './written-turn.ts';

const CALLS = ['<｜tool▁calls▁begin｜>', '<｜tool▁calls▁end｜>'] as const;
const CALL = ['<｜tool▁call▁begin｜>', '<｜tool▁call▁end｜>'] as const;
const SEPARATOR = '<｜tool▁sep｜>';
/** How R1 and the models distilled from it begin a call; V3.1 has the name in its place. */
const KIND = `function${SEPARATOR}`;
const SPECIAL = /<｜[^｜<>]*｜>|<\/?think>/u;

/**
 * What DeepSeek's R1, the models that were distilled from it, and V3.1 speak: perhaps a thought, perhaps text, and then calls
 * between tags. R1 writes arguments in a fence of JSON, V3.1 without one. A turn without calls is the answer.
 */
export function deepseekDialect(
  tokenizer: Tokenizer,
  guard: Guard,
  frame: TemplateFrame,
  turnEnds: readonly string[],
): Dialect {
  frame.assertSplits();
  const fenced = frame.betweenTagAndCall(CALL[0]) === KIND;
  const opened = frame.opensThought;
  const read = (text: string): ReadTurn => readDeepseek(withoutEnd(text, turnEnds));
  const turnText = (turn: WrittenTurn): string => {
    assertOneAction(turn);
    const { think, answer, raw } = turn;
    if (raw !== undefined) return withEnd(raw, turnEnds);
    const plain = (text: string): string => assertPlain(text, guard, SPECIAL);
    const begins = opened ? '' : '<think>\n';
    const thought =
      think === undefined ? (opened ? '\n</think>\n\n' : '') : `${begins}${plain(think)}\n</think>\n\n`;
    const calls = callsOf(turn).map((call) => written(call, fenced, guard));
    const between = calls.length > 1 ? frame.betweenCalls(CALL[1], CALL[0]) : '';
    const action = calls.length > 0 ? CALLS[0] + calls.join(between) + CALLS[1] : plain(answer!);
    return readBack(turn, thought + action + turnEnds[0]!, (text, most) => actionOf(read(text), most));
  };
  return {
    name: 'deepseek',
    promptTokens: (messages) => frame.promptTokens(messages),
    observationTokens: ({ text }) => frame.observationTokens(text),
    messageTokens: (messages) => frame.messageTokens(messages),
    stopTokens: turnEnds.map((token) => tokenizer.idOf(token)),
    parse: (text, mostCalls) => actionOf(read(text), mostCalls),
    read: (text) => spokenOf(read(text)),
    canWrite: () => true,
    turnText,
    turnTokens: (turn) => turnTokensOf(tokenizer, turnText(turn)),
  };
}

/**
 * Reads a turn without its end token. Its template opens a thought before the first turn and not behind results, so whatever
 * stands before `</think>` is one, opened here or there.
 */
export function readDeepseek(text: string): ReadTurn {
  const close = text.indexOf('</think>');
  const thought =
    close < 0
      ? ''
      : text
          .slice(0, close)
          .trimStart()
          .replace(/^<think>/u, '')
          .trim();
  const rest = close < 0 ? text : text.slice(close + '</think>'.length);
  const start = rest.indexOf(CALLS[0]);
  const said = (start < 0 ? rest : rest.slice(0, start)).trim();
  const stray = (SPECIAL.exec(thought) ?? SPECIAL.exec(said))?.[0];
  if (stray === '<think>') return { problem: 'unclosed <think>' };
  if (stray !== undefined) return { problem: `unexpected ${stray}` };
  if (start < 0) return { thought, text: said, calls: [] };
  const inside = rest.slice(start + CALLS[0].length);
  const end = inside.indexOf(CALLS[1]);
  if (end < 0) return { problem: `unclosed ${CALLS[0]}` };
  if (inside.slice(end + CALLS[1].length).trim() !== '') return { problem: `text after ${CALLS[1]}` };
  const calls = callsIn(inside.slice(0, end));
  return typeof calls === 'string' ? { problem: calls } : { thought, text: said, calls };
}

/** The calls between the tags of all, or why they are none. */
function callsIn(inside: string): ToolCall[] | string {
  const calls: ToolCall[] = [];
  for (let rest = inside.trim(); rest !== '';) {
    if (!rest.startsWith(CALL[0])) return `${CALL[0]} is missing`;
    const end = rest.indexOf(CALL[1]);
    if (end < 0) return `unclosed ${CALL[0]}`;
    const call = callIn(rest.slice(CALL[0].length, end));
    if (typeof call === 'string') return call;
    calls.push(call);
    rest = rest.slice(end + CALL[1].length).trim();
  }
  return calls.length === 0 ? `no call behind ${CALLS[0]}` : calls;
}

function callIn(content: string): ToolCall | string {
  const parts = content.split(SEPARATOR);
  if (parts.length !== 2) return `a call has ${SEPARATOR} once`;
  const [before, behind] = parts as [string, string];
  const fence = /^function$/u.test(before.trim())
    ? /^([^\n]*)\n```json\n(.*)\n```$/su.exec(behind.trim())
    : null;
  const [name, given] = fence ? [fence[1]!.trim(), fence[2]!] : [before.trim(), behind];
  const json = readJson(given);
  if (json === undefined) return 'call is not JSON';
  const action = parseJsonCall(JSON.stringify({ name, arguments: json }), ['arguments']);
  if (action.kind === 'call') return action.call;
  return action.kind === 'malformed' ? action.reason : 'call is not an object';
}

function written(
  { name, arguments: given }: NonNullable<WrittenTurn['call']>,
  fenced: boolean,
  guard: Guard,
): string {
  const json = callJson(given as object, guard, SPECIAL);
  const tool = assertPlain(name, guard, SPECIAL);
  const call = fenced ? `${KIND}${tool}\n\`\`\`json\n${json}\n\`\`\`` : `${tool}${SEPARATOR}${json}`;
  return CALL[0] + call + CALL[1];
}
