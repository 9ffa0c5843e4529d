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
/** What a column of words can be narrowed to. */
const NARROWEST = 8;

/** The width of the terminal that standard output is; null where it is a pipe or a file. */
export const terminalWidth = (): number | null =>
  process.stdout.isTTY ? (process.stdout.columns ?? 80) : null;

/** Rows for a person in a terminal, as wide as that is; lines of fields with tabs between them for programs. */
export function textTable(
  head: readonly string[],
  rows: readonly (readonly Cell[])[],
  options: TableOptions = {},
): string {
  const { width = terminalWidth() } = options;
  if (width === null) return [head, ...rows].map((row) => row.map(asField).join('\t')).join('\n');
  const { shown, left } = fitting(head, rows, width, options.optional ?? []);
  const table = new Table({
    head: shown.map((column) => head[column]!),
    colWidths: widths(
      shown.map((column) => longest(head, rows, column)),
      width,
    ),
    wordWrap: true,
    wrapOnWordBoundary: false,
    style: { head: [], border: [] },
    ...(options.compact && { chars: NO_RULES }),
    ...(options.align && { colAligns: shown.map((column) => options.align![column]!) }),
  });
  for (const row of rows) table.push(shown.map((column) => row[column]!));
  const note =
    left.length === 0 ? '' : `\nno room for ${left.join(', ')}: a wider terminal or a pipe has them`;
  return table.toString() + note;
}

/** One line, whatever the cell has. */
const asField = (cell: Cell): string =>
  String(cell)
    .replaceAll(/\s*\n\s*/gu, '; ')
    .replaceAll('\t', ' ');

const length = (text: string): number => Math.max(...text.split('\n').map((line) => line.length));

const longest = (head: readonly string[], rows: readonly (readonly Cell[])[], column: number): number =>
  rows.reduce((most, row) => Math.max(most, length(String(row[column]))), length(head[column]!));

/** The columns that there is room for, and the heads of the others. */
function fitting(
  head: readonly string[],
  rows: readonly (readonly Cell[])[],
  width: number,
  optional: readonly string[],
): { shown: number[]; left: string[] } {
  const shown = head.map((_, column) => column);
  const left: string[] = [];
  const needed = (): number =>
    shown.reduce((sum, column) => sum + Math.min(longest(head, rows, column), NARROWEST) + AROUND, 1);
  for (const name of optional) {
    if (needed() <= width) break;
    shown.splice(shown.indexOf(head.indexOf(name)), 1);
    left.push(name);
  }
  return { shown, left };
}

/** Of columns with their blanks: the widest give way until a line fits, or all are as narrow as they can be. */
function widths(natural: readonly number[], width: number): number[] {
  const now = [...natural];
  const room = width - 1 - AROUND * now.length;
  for (let over = now.reduce((sum, one) => sum + one, 0) - room; over > 0; over--) {
    const widest = now.indexOf(Math.max(...now));
    if (now[widest]! <= NARROWEST) break;
    now[widest]!--;
  }
  return now.map((one) => one + 2);
}
