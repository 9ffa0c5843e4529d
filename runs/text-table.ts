import process from 'node:process';
import Table from 'cli-table3';

type Cell = string | number;

export interface TableOptions {
  align?: readonly ('left' | 'right')[];
  /** A line a row, without rules between them. */
  compact?: boolean;
  /** Columns that a narrow terminal can do without, by their heads: the first is left out first. */
  optional?: readonly string[];
  /** Characters that a line may have; null where no person reads: fields are then separated by tabs. Default: this terminal's. */
  width?: number | null;
}

const NO_RULES = { mid: '', 'left-mid': '', 'mid-mid': '', 'right-mid': '' };
/** Of a cell: a blank on each side and a rule. */
const AROUND = 3;
/** What a column can be narrowed to where words have to be cut. */
const NARROWEST = 8;
/** Longer words, such as digests and keys, are cut before a column is left out for them. */
const LONGEST_WHOLE = 16;
const SHORT_HEAD = 10;

/** The width of the terminal that standard output is; null where it is a pipe or a file. */
/** A terminal that does not know its width says 0. */
const terminalWidth = (): number | null => (process.stdout.isTTY ? process.stdout.columns || 80 : null);

/** Rows for a person in a terminal, as wide as that is; lines of fields with tabs between them for programs. */
export function textTable(
  head: readonly string[],
  rows: readonly (readonly Cell[])[],
  options: TableOptions = {},
): string {
  const { width = terminalWidth() } = options;
  if (width === null) return [head, ...rows].map((row) => row.map(asField).join('\t')).join('\n');
  const { shown, left } = fitting(head, rows, width, options.optional ?? []);
  const room = widths(
    shown.map((column) => longest(head, rows, column, lengthOf)),
    shown.map((column) => longest(head, rows, column, longestWord)),
    width,
  );
  const table = new Table({
    head: shown.map((column, i) => wrapped(head[column]!, room[i]!)),
    colWidths: room.map((one) => one + 2),
    style: { head: [], border: [] },
    ...(options.compact && { chars: NO_RULES }),
    ...(options.align && { colAligns: shown.map((column) => options.align![column]!) }),
  });
  for (const row of rows) table.push(shown.map((column, i) => wrapped(String(row[column]), room[i]!)));
  const note =
    left.length === 0 ? '' : `\nno room for ${left.join(', ')}: a wider terminal or a pipe has them`;
  return table.toString() + note;
}

/** One line, whatever the cell has. */
const asField = (cell: Cell): string =>
  String(cell)
    .replaceAll(/\s*\n\s*/gu, '; ')
    .replaceAll('\t', ' ');

const lengthOf = (text: string): number => Math.max(...text.split('\n').map((line) => line.length));

/**
 * Where a line is broken: between words, with a unit beside its number (`0.0 %`), and between parts that can still be read
 * (`length-` and `explosion`, `runs/` and `people/`).
 */
const PARTS = /(?<=\s)(?![%–])|(?<=\/)|(?<=[\p{L}\d]-)(?=\p{L})/u;

const longestWord = (text: string): number =>
  text.split(PARTS).reduce((most, part) => Math.max(most, part.trimEnd().length), 0);

/** Of a column by some measure of its cells; a short head is one word. */
const longest = (
  head: readonly string[],
  rows: readonly (readonly Cell[])[],
  column: number,
  measure: (text: string) => number,
): number =>
  rows.reduce(
    (most, row) => Math.max(most, measure(String(row[column]))),
    head[column]!.length <= SHORT_HEAD ? head[column]!.length : measure(head[column]!),
  );

/** Lines of no more than so many characters, broken between words as far as these fit. */
function wrapped(text: string, width: number): string {
  return text
    .split('\n')
    .flatMap((line) => {
      const lines = [''];
      for (const part of line.split(PARTS)) {
        if ((lines.at(-1)! + part.trimEnd()).length <= width) lines[lines.length - 1] += part;
        else {
          const cut = part.match(new RegExp(`.{1,${width}}`, 'gu'))!;
          // Blanks at the end of a line take no room.
          lines.push(...cut.filter((piece, i) => i === 0 || piece.trim() !== ''));
        }
      }
      return lines.map((one) => one.trimEnd()).filter((one, i) => i > 0 || one !== '' || line === '');
    })
    .join('\n');
}

/** The columns that there is room for, their words whole unless they are very long, and the heads of the others. */
function fitting(
  head: readonly string[],
  rows: readonly (readonly Cell[])[],
  width: number,
  optional: readonly string[],
): { shown: number[]; left: string[] } {
  const shown = head.map((_, column) => column);
  const left: string[] = [];
  const least = head.map((_, column) =>
    Math.max(
      Math.min(longest(head, rows, column, longestWord), LONGEST_WHOLE),
      Math.min(longest(head, rows, column, lengthOf), NARROWEST),
    ),
  );
  const needed = (): number => shown.reduce((sum, column) => sum + least[column]! + AROUND, 1);
  for (const name of optional) {
    if (needed() <= width) break;
    shown.splice(shown.indexOf(head.indexOf(name)), 1);
    left.push(name);
  }
  return { shown, left };
}

/**
 * Of columns without their blanks: the widest give way until a line fits, first those whose words stay whole, or all are as
 * narrow as they can be.
 */
function widths(natural: readonly number[], words: readonly number[], width: number): number[] {
  const now = [...natural];
  const room = width - 1 - AROUND * now.length;
  const over = (): number => now.reduce((sum, one) => sum + one, 0) - room;
  for (const least of [words.map((one) => Math.max(one, NARROWEST)), words.map(() => NARROWEST)]) {
    for (let left = over(); left > 0; left--) {
      const widest = now.reduce(
        (best, one, i) => (one > least[i]! && (best < 0 || one > now[best]!) ? i : best),
        -1,
      );
      if (widest < 0) break;
      now[widest]!--;
    }
  }
  return now;
}
