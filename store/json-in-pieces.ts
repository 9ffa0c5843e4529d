import type { InPieces } from '../engine/in-pieces.ts';

/** How deep the breaks go: to the fields of an episode of a group. */
const DEPTH = 3;

/** What `JSON.stringify` gives for plain data, with breaks: a group of hundreds of episodes is tens of megabytes. */
export function* jsonInPieces(value: object): InPieces<string> {
  return (yield* textOf(value, DEPTH))!;
}

function* textOf(value: unknown, depth: number): InPieces<string | undefined> {
  if (depth > 0 && Array.isArray(value) && typeof value[0] === 'object') {
    const parts: string[] = [];
    for (const item of value) parts.push((yield* textOf(item, depth - 1)) ?? 'null');
    return `[${parts.join(',')}]`;
  }
  if (depth > 0 && typeof value === 'object' && value !== null && !Array.isArray(value)) {
    const parts: string[] = [];
    for (const [name, member] of Object.entries(value)) {
      const text = yield* textOf(member, depth - 1);
      if (text !== undefined) parts.push(`${JSON.stringify(name)}:${text}`);
    }
    return `{${parts.join(',')}}`;
  }
  yield;
  return JSON.stringify(value);
}
