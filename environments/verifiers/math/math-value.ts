import { lettersOf } from './letters.ts';
import { plainLatex } from './plain-latex.ts';
import { readNumber } from './number.ts';
import type { WrittenNumber } from './number.ts';

/** What an answer in mathematics says, as far as it is understood; everything else is compared by its letters. */
export type MathValue =
  | ({ kind: 'number' } & WrittenNumber)
  /** Ordered, between its brackets: a tuple, a point, an interval. */
  | { kind: 'tuple'; brackets: string; items: MathValue[] }
  /** In any order: `\{1, 2\}`, or `1, 2` without brackets. */
  | { kind: 'set'; items: MathValue[] }
  /** Joined by `\cup`, in any order. */
  | { kind: 'union'; items: MathValue[] }
  /** In a set of several unknowns, as in `x = 1, y = 2`; or of all of them at once, as in `(x, y) = (1, 2)`. */
  | { kind: 'named'; name: string; value: MathValue }
  /** By rows, each as long as the others. */
  | { kind: 'matrix'; rows: MathValue[][] }
  | { kind: 'text'; text: string };

/** Longest answer that is read, in characters, most items of a list, and deepest list in lists. */
export const LONGEST_MATH_ANSWER = 500;
const MOST_ITEMS = 64;
const DEEPEST = 3;

/** Never throws and never evaluates: `2+3` is text. Longer input than `LONGEST_MATH_ANSWER` is text as it stands. */
export function readMathValue(latex: string): MathValue {
  if (latex.length > LONGEST_MATH_ANSWER) return { kind: 'text', text: latex };
  return readPart(plainLatex(latex), 0);
}

function readPart(text: string, depth: number): MathValue {
  const trimmed = text.trim();
  const unknowns = UNKNOWNS.exec(trimmed);
  if (unknowns && depth < DEEPEST)
    return {
      kind: 'named',
      name: unknowns[1]!.replace(/\s/gu, ''),
      value: readPart(unknowns[2]!, depth + 1),
    };
  const bare = withoutName(trimmed);
  const plain = unframed(bare);
  const number = readNumber(bare) ?? readNumber(plain === bare ? bare : asMeasure(plain));
  if (number) return { kind: 'number', ...number };
  if (depth < DEEPEST) {
    const several = readMatrix(plain, depth) ?? readUnion(plain, depth) ?? readList(plain, depth);
    if (several) return several;
  }
  return { kind: 'text', text: lettersOf(bare) };
}

const NAMED = /^(\\?[A-Za-z]{1,8}(?:\([A-Za-z]\))?)\s*(?:=|\\in(?![A-Za-z]))\s*([^=]+)$/su;
const UNKNOWNS = /^(\(\s*[A-Za-z](?:\s*,\s*[A-Za-z])+\s*\))\s*=\s*([^=]+)$/su;

/** `x = 5` says 5, and `f(x) = 2x` says 2x. */
const withoutName = (text: string): string => NAMED.exec(text)?.[2] ?? text;

/** What stands in a frame around all of it: `\text{5}` and `{5}` say 5. */
function unframed(text: string): string {
  const inner = /^(?:\\text\s*)?\{(.*)\}$/su.exec(text)?.[1];
  // `{1}{2}` begins with a frame and ends with another.
  return inner === undefined || topLevelParts(inner) === null ? text : unframed(inner.trim());
}

/** Words that stood in one frame with their number are no product. */
const asMeasure = (text: string): string => text.replace(/(?<=^[-+]?[\d.,]+) ([A-Za-z ]+)$/u, '\\text{$1}');

/** `1 \pm 2` stands for both. */
function bothSigns(part: string): string[] {
  const signs = part.match(/\\pm(?![A-Za-z])/gu)?.length ?? 0;
  return signs === 1 ? ['+', '-'].map((sign) => part.replace(/\\pm(?![A-Za-z])\s*/u, sign)) : [part];
}

function readList(text: string, depth: number): MathValue | null {
  const set = /^\\\{(.*)\\\}$/su.exec(text);
  const bracketed = isOne(text) ? /^([([])(.*)([)\]])$/su.exec(text) : null;
  const inner = (set?.[1] ?? bracketed?.[2] ?? text).trim();
  const written = topLevelParts(inner);
  // Brackets that do not belong together, as in `(1,2) \cap (3,4)`.
  if (!written || written.some((part) => part.trim() === '')) return null;
  const parts = bracketed && !set ? written : written.flatMap(bothSigns);
  if (parts.length > MOST_ITEMS) return null;
  if (!set && parts.length === 1) {
    return bracketed?.[1] === '(' && bracketed[3] === ')' ? readPart(inner, depth + 1) : null;
  }
  const items = parts.map((part) => readPart(part, depth + 1));
  if (bracketed && !set) return { kind: 'tuple', brackets: `${bracketed[1]}${bracketed[3]}`, items };
  const names = parts.map((part) => NAMED.exec(part.trim())?.[1]);
  if (new Set(names).size === 1) return { kind: 'set', items };
  return {
    kind: 'set',
    items: items.map((value, i) =>
      names[i] === undefined ? value : { kind: 'named', name: names[i], value },
    ),
  };
}

function readUnion(text: string, depth: number): MathValue | null {
  if (!isOne(text)) return null;
  const parts = topLevelParts(text, '\\cup');
  if (!parts || parts.length < 2 || parts.length > MOST_ITEMS) return null;
  if (parts.some((part) => part.trim() === '')) return null;
  return { kind: 'union', items: parts.map((part) => readPart(part, depth + 1)) };
}

const MATRIX = /^\\begin\{(?:([pb]?matrix)\}|(array)\}\s*\{[lcr| ]*\})(.*)\\end\{(?:\1|\2)\}$/su;

/** In round or square brackets alike; `vmatrix` is a determinant, and no matrix. */
function readMatrix(text: string, depth: number): MathValue | null {
  const framed = /^\((.*)\)$|^\[(.*)\]$/su.exec(text);
  const inner = MATRIX.exec((framed?.[1] ?? framed?.[2] ?? text).trim())?.[3];
  if (inner === undefined || inner.includes('\\begin')) return null;
  const rows = inner
    .trim()
    .replace(/\\cr$/u, '')
    .split(/\\cr(?![A-Za-z])/u)
    .map((row) => row.split('&').map((cell) => cell.trim()));
  if (rows.length * rows[0]!.length > MOST_ITEMS) return null;
  if (rows.some((row) => row.length !== rows[0]!.length || row.includes(''))) return null;
  return { kind: 'matrix', rows: rows.map((row) => row.map((cell) => readPart(cell, depth + 1))) };
}

/** Not several: `(1,2), (3,4)` begins with a bracket and ends with another one's. */
const isOne = (text: string): boolean => topLevelParts(text)?.length === 1;

/** Split at commas, or at a command, outside of brackets; null where brackets do not match up. */
function topLevelParts(text: string, separator = ','): string[] | null {
  const parts: string[] = [];
  let depth = 0;
  let from = 0;
  for (let i = 0; i < text.length; i++) {
    const char = text[i]!;
    if ('([{'.includes(char)) depth++;
    if (')]}'.includes(char)) depth--;
    if (depth < 0) return null;
    if (depth === 0 && text.startsWith(separator, i) && !/^\\cup[A-Za-z]/u.test(text.slice(i, i + 5))) {
      parts.push(text.slice(from, i));
      from = i + separator.length;
    }
  }
  return depth === 0 ? [...parts, text.slice(from)] : null;
}

/** Whether an answer says what is expected. Items of sets are matched one to one, in any order. */
export function sameValue(expected: MathValue, given: MathValue, options: { lowestTerms: boolean }): boolean {
  if (expected.kind === 'named' && given.kind === 'named' && expected.name !== given.name) return false;
  if (expected.kind === 'named') return sameValue(expected.value, given, options);
  if (given.kind === 'named') return sameValue(expected, given.value, options);
  if (expected.kind === 'number' && given.kind === 'number') return sameNumber(expected, given, options);
  if (expected.kind === 'text' && given.kind === 'text') return expected.text === given.text;
  if (expected.kind === 'tuple' && given.kind === 'tuple') {
    return (
      expected.brackets === given.brackets &&
      expected.items.length === given.items.length &&
      expected.items.every((item, i) => sameValue(item, given.items[i]!, options))
    );
  }
  if (expected.kind === 'matrix' && given.kind === 'matrix') {
    const [ours, theirs] = [expected.rows, given.rows];
    return (
      ours.length === theirs.length &&
      ours[0]!.length === theirs[0]!.length &&
      ours.every((row, i) => row.every((cell, j) => sameValue(cell, theirs[i]![j]!, options)))
    );
  }
  return (
    ((expected.kind === 'set' && given.kind === 'set') ||
      (expected.kind === 'union' && given.kind === 'union')) &&
    sameInAnyOrder(expected.items, given.items, options)
  );
}

function sameInAnyOrder(
  expected: readonly MathValue[],
  given: readonly MathValue[],
  options: { lowestTerms: boolean },
): boolean {
  const left = [...given];
  return (
    expected.length === given.length &&
    expected.every((item) => {
      const at = left.findIndex((other) => sameValue(item, other, options));
      if (at >= 0) left.splice(at, 1);
      return at >= 0;
    })
  );
}

/**
 * Where only one of them has a unit, it is read into the other one; 50% also is 1/2. Who writes a fraction that could
 * be reduced has copied a quotient, unless one is expected.
 */
function sameNumber(
  expected: WrittenNumber,
  given: WrittenNumber,
  { lowestTerms }: { lowestTerms: boolean },
): boolean {
  if (lowestTerms && given.reducible && !expected.reducible) return false;
  if (expected.unit !== null && given.unit !== null && expected.unit !== given.unit) return false;
  if (expected.value.equals(given.value)) return true;
  const [percent, plain] = expected.unit === '%' ? [expected, given] : [given, expected];
  return percent.unit === '%' && plain.unit === null && percent.value.div(100).equals(plain.value);
}

/** The same for two values that are equal, but for percentages, and for units and names that are left out. */
export function canonicalValue(value: MathValue): string {
  switch (value.kind) {
    case 'number':
      return value.value.toFraction() + (value.unit === null ? '' : ` ${value.unit}`);
    case 'tuple':
      return `${value.brackets[0]}${value.items.map(canonicalValue).join(',')}${value.brackets[1]}`;
    case 'set':
      return `{${value.items.map(canonicalValue).toSorted().join(',')}}`;
    case 'union':
      return value.items.map(canonicalValue).toSorted().join(' u ');
    case 'matrix':
      return `[${value.rows.map((row) => `[${row.map(canonicalValue).join(',')}]`).join(',')}]`;
    case 'named':
      return `${value.name}=${canonicalValue(value.value)}`;
    default:
      return value.text;
  }
}
