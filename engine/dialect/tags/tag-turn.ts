import type { Action } from '../../../core/episode/episode.ts';
import { malformed } from '../malformed.ts';

/** Tags of a dialect whose calls are text between tags. Names without brackets, such as `search`. */
export interface Tags {
  call: string;
  answer: string;
  /** Where the tool's words go. */
  result: string;
  /** Whether a Markdown fence with Python, outside of any tag, is a call too. */
  fences: boolean;
}

export type TagPiece = { kind: 'call' | 'answer'; content: string };

/** The first call or answer that a text opens, as far as it goes; `end` is absent while it is not closed. */
function firstPiece(text: string, tags: Tags) {
  const fence = tags.fences ? '|```(?:python3?|py)[ \\t]*\\n' : '';
  const open = new RegExp(`<(${tags.call}|${tags.answer})>${fence}`, 'u').exec(text);
  if (!open) return undefined;
  const [whole, name] = open;
  const from = open.index + whole.length;
  const closing = name === undefined ? /\n[ \t]*```/u : new RegExp(`</${name}>`, 'u');
  const close = closing.exec(text.slice(from));
  return {
    kind: name === tags.answer ? ('answer' as const) : ('call' as const),
    opening: whole.trim(),
    start: open.index,
    from,
    ...(close && { to: from + close.index, end: from + close.index + close[0].length }),
  };
}

/** Whether a turn has come to the end of its first call or answer. */
export function isTagTurnOver(text: string, tags: Tags): boolean {
  return firstPiece(text, tags)?.end !== undefined;
}

/**
 * Reads a turn: any text, then one call or answer. What little follows is passed over, because a turn is cut after the
 * token that closes it, and that token may hold a letter more.
 */
export function parseTagTurn(
  text: string,
  tags: Tags,
  opened: boolean,
): TagPiece | Extract<Action, { kind: 'malformed' }> {
  const piece = firstPiece(text, tags);
  const before = text.slice(0, piece?.start);
  const result = new RegExp(`</?${tags.result}>`, 'u').exec(text)?.[0];
  if (result !== undefined) return malformed(`${result} is for tools to write`);
  const count = (tag: string): number => before.split(tag).length - 1;
  if (count('<think>') + (opened ? 1 : 0) > count('</think>')) return malformed('unclosed <think>');
  const stray = new RegExp(`</(?:${tags.call}|${tags.answer})>`, 'u').exec(before)?.[0];
  if (stray !== undefined) return malformed(`unexpected ${stray}`);
  if (!piece) return malformed('no call and no answer');
  if (piece.end === undefined) return malformed(`unclosed ${piece.opening}`);
  const content = text.slice(piece.from, piece.to);
  const nested = new RegExp(`<(?:${tags.call}|${tags.answer})>`, 'u').exec(content)?.[0];
  if (nested !== undefined) return malformed(`${nested} inside ${piece.opening}`);
  if (firstPiece(text.slice(piece.end), tags)) return malformed('one call a turn');
  if (content.trim() === '')
    return malformed(piece.kind === 'call' ? `empty ${piece.opening}` : 'empty answer');
  return { kind: piece.kind, content };
}
