import type { ToolCall } from '../../core/episode/episode.ts';
import type { Json } from '../../core/json/json.ts';

// Calls as Python writes them, `[f(a=1, b='x'), g()]`: names, keyword arguments, and literals of what JSON has.

/** Levels of arguments, as for calls in JSON. */
const DEEPEST = 100;
const NAME = /[\p{L}_][\p{L}\p{N}_]*(?:\.[\p{L}_][\p{L}\p{N}_]*)*/uy;
const KEY = /[\p{L}_][\p{L}\p{N}_]*/uy;
const NUMBER = /[+-]?(?:\d+(?:_\d+)*\.?(?:\d+(?:_\d+)*)?|\.\d+)(?:[eE][+-]?\d+)?/y;
const WORD = /[A-Za-z]+/y;
/** JSON's words are what models write that have read more JSON than Python. */
const WORDS = new Map<string, Json>([
  ['True', true],
  ['False', false],
  ['None', null],
  ['true', true],
  ['false', false],
  ['null', null],
]);
const ESCAPES: Readonly<Record<string, string>> = {
  n: '\n',
  r: '\r',
  t: '\t',
  b: '\b',
  f: '\f',
  v: '\v',
  a: '\u0007',
  '\\': '\\',
  "'": "'",
  '"': '"',
  '\n': '',
};
/** Digits behind `\x`, `\u` and `\U`. */
const HEX: Readonly<Record<string, number>> = { x: 2, u: 4, U: 8 };

/** How such a list begins; a list of anything else is no call. */
export const looksLikeCalls = (text: string): boolean => /^\[\s*[\p{L}_][\p{L}\p{N}_.]*\s*\(/u.test(text);

/** The calls, or why the text is no list of them. */
export function readPythonCalls(text: string): ToolCall[] | string {
  try {
    return new Reader(text).calls();
  } catch (error) {
    if (error instanceof Unreadable) return error.message;
    throw error;
  }
}

class Unreadable extends Error {}

class Reader {
  private readonly text: string;
  private at = 0;

  constructor(text: string) {
    this.text = text;
  }

  calls(): ToolCall[] {
    this.expect('[');
    const calls = this.listOf(']', () => this.call());
    if (this.at < this.text.length) throw new Unreadable('text after the calls');
    if (calls.length === 0) throw new Unreadable('no call between [ and ]');
    return calls;
  }

  private call(): ToolCall {
    const name = this.match(NAME);
    if (name === undefined) throw new Unreadable('a call has no name');
    this.expect('(');
    const given = new Map<string, Json>();
    this.listOf(')', () => {
      const key = this.match(KEY);
      if (key === undefined || !this.next('=')) throw new Unreadable(`an argument of ${name} has no name`);
      if (given.has(key)) throw new Unreadable(`${name} has the argument ${key} twice`);
      given.set(key, this.value(DEEPEST));
    });
    return { name, arguments: Object.fromEntries(given) };
  }

  /** What stands between commas, the last of which may stand before the end. */
  private listOf<T>(end: string, one: () => T): T[] {
    const all: T[] = [];
    while (!this.next(end)) {
      all.push(one());
      if (this.next(end)) break;
      this.expect(',');
    }
    return all;
  }

  private value(levels: number): Json {
    if (levels === 0) throw new Unreadable(`arguments are deeper than ${DEEPEST} levels`);
    if (this.next('[')) return this.listOf(']', () => this.value(levels - 1));
    if (this.next('(')) return this.listOf(')', () => this.value(levels - 1));
    if (this.next('{')) {
      const entries = this.listOf('}', (): [string, Json] => {
        const key = this.string();
        if (key === undefined) throw new Unreadable('a key is no text');
        this.expect(':');
        return [key, this.value(levels - 1)];
      });
      return Object.fromEntries(entries);
    }
    const text = this.string();
    if (text !== undefined) return text;
    const number = this.match(NUMBER);
    if (number !== undefined) {
      const value = Number(number.replaceAll('_', ''));
      if (!Number.isFinite(value)) throw new Unreadable(`${number} is too large`);
      return value;
    }
    const rest = this.rest();
    const known = WORDS.get(this.match(WORD) ?? '');
    if (known === undefined) throw new Unreadable(`${rest} is no value`);
    return known;
  }

  private string(): string | undefined {
    const quote = ["'", '"'].find((one) => this.next(one));
    if (quote === undefined) return undefined;
    let said = '';
    for (;;) {
      const letter = this.text[this.at++];
      if (letter === undefined) throw new Unreadable(`unclosed ${quote}`);
      if (letter === quote) break;
      said += letter === '\\' ? this.escaped() : letter;
    }
    if (/\p{Surrogate}/u.test(said)) throw new Unreadable('a text has half a character');
    return said;
  }

  /** What stands behind a backslash; Python keeps one that means nothing. */
  private escaped(): string {
    const letter = this.text[this.at++] ?? '';
    const digits = HEX[letter];
    if (digits === undefined) return ESCAPES[letter] ?? `\\${letter}`;
    const code = this.text.slice(this.at, this.at + digits);
    const point =
      /^[0-9a-fA-F]+$/u.test(code) && code.length === digits ? Number.parseInt(code, 16) : Infinity;
    if (point > 0x10ffff) throw new Unreadable(`\\${letter}${code} is no character`);
    this.at += digits;
    return String.fromCodePoint(point);
  }

  private expect(letter: string): void {
    if (!this.next(letter)) throw new Unreadable(`${letter} is missing before ${this.rest()}`);
  }

  /** Takes this letter with the white space around it, where it is the next one. */
  private next(letter: string): boolean {
    this.skip();
    if (this.text[this.at] !== letter) return false;
    this.at++;
    if (letter !== "'" && letter !== '"') this.skip();
    return true;
  }

  private match(pattern: RegExp): string | undefined {
    this.skip();
    pattern.lastIndex = this.at;
    const found = pattern.exec(this.text)?.[0];
    if (found === undefined) return undefined;
    this.at += found.length;
    return found;
  }

  private skip(): void {
    while (/\s/u.test(this.text[this.at] ?? '')) this.at++;
  }

  private rest(): string {
    const rest = this.text.slice(this.at, this.at + 20);
    return rest === '' ? 'the end' : rest;
  }
}

const isName = (pattern: RegExp, text: string): boolean => {
  pattern.lastIndex = 0;
  return pattern.exec(text)?.[0] === text;
};

/** A call as Python writes it; undefined where its name or an argument's is none there. Throws Error for what is no JSON. */
export function pythonCall({ name, arguments: given }: ToolCall): string | undefined {
  if (typeof given !== 'object' || given === null || Array.isArray(given) || !isName(NAME, name))
    return undefined;
  const entries = Object.entries(given);
  if (!entries.every(([key]) => isName(KEY, key))) return undefined;
  return `${name}(${entries.map(([key, value]) => `${key}=${pythonLiteral(value)}`).join(', ')})`;
}

function pythonLiteral(value: Json): string {
  if (value === null) return 'None';
  if (typeof value === 'boolean') return value ? 'True' : 'False';
  if (typeof value === 'number') {
    if (!Number.isFinite(value)) throw new Error(`${value} is no number of JSON`);
    return Object.is(value, -0) ? '-0.0' : String(value);
  }
  if (typeof value === 'string') return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(pythonLiteral).join(', ')}]`;
  return `{${Object.entries(value)
    .map(([key, one]) => `${JSON.stringify(key)}: ${pythonLiteral(one)}`)
    .join(', ')}}`;
}
