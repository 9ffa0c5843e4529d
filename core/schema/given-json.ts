import type { Json } from '../json/json.ts';

/** Brackets within brackets: a line that nests deeper is no conversation. */
const DEEPEST = 64;

/** What is wrong with a line; whoever reads the file says where. */
export class LineProblem extends Error {}

/** In a pattern with the flag `u` this is half of a pair alone. */
const LONE = /\p{Surrogate}/u;
/** How only an escape brings one into text that was UTF-8. */
const ESCAPED = /\\u[dD][89a-fA-F]/;

/**
 * JSON of others that says one thing: its nesting is bounded before it is read, no object has a key twice, of which readers
 * take one or the other, and no text has half a character, which no tokens spell. Throws LineProblem.
 */
export function parseGivenJson(text: string, what: string): Json {
  // Of each bracket that is open: the keys so far, of an object whose next text is a key.
  const open: { keys: Set<string> | null; awaitsKey: boolean }[] = [];
  let twice: string | undefined;
  for (let i = 0; i < text.length; i++) {
    const letter = text[i];
    const inside = open.at(-1);
    if (letter === '"') {
      const end = endOfText(text, i);
      if (inside?.keys && inside.awaitsKey) {
        const key = keyOf(text.slice(i, end + 1));
        if (inside.keys.has(key)) twice ??= key;
        inside.keys.add(key);
        inside.awaitsKey = false;
      }
      i = end;
    } else if (letter === '{' || letter === '[') {
      open.push({ keys: letter === '{' ? new Set() : null, awaitsKey: letter === '{' });
      if (open.length > DEEPEST) throw new LineProblem(`nests ${what} deeper than ${DEEPEST} brackets`);
    } else if (letter === '}' || letter === ']') open.pop();
    else if (letter === ',' && inside?.keys) inside.awaitsKey = true;
  }
  const json = parsed(text, what);
  if (twice !== undefined)
    throw new LineProblem(`has the key ${JSON.stringify(twice.slice(0, 80))} twice in one object: keep one`);
  if (ESCAPED.test(text) && hasLone(json))
    throw new LineProblem(`has half a character (a lone surrogate) in ${what}: leave it out`);
  return json;
}

/** Where the text that begins at `start` ends; the last place where it does not. */
function endOfText(text: string, start: number): number {
  for (let i = start + 1; i < text.length; i++) {
    if (text[i] === '\\') i++;
    else if (text[i] === '"') return i;
  }
  return text.length;
}

/** As it is meant: a letter may be written as an escape. What is no JSON is found by whoever reads it whole. */
function keyOf(quoted: string): string {
  if (!quoted.includes('\\')) return quoted.slice(1, -1);
  try {
    return JSON.parse(quoted) as string;
  } catch {
    return quoted;
  }
}

function parsed(text: string, what: string): Json {
  try {
    return JSON.parse(text) as Json;
  } catch (error) {
    throw new LineProblem(`is not JSON in ${what}: ${(error as Error).message.slice(0, 200)}`);
  }
}

function hasLone(json: Json): boolean {
  if (typeof json === 'string') return LONE.test(json);
  if (typeof json !== 'object' || json === null) return false;
  return Object.entries(json).some(([key, value]) => LONE.test(key) || hasLone(value));
}
