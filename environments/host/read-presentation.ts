import type { SubjectBlock } from '../contract/environment.ts';
import type { Read } from './read-answers.ts';

// What `present()` gives is anything, of any size. It is measured before it is looked at, and no message shows it.

const MOST_BLOCKS = 20;
const MOST_COLUMNS = 20;
const MOST_ROWS = 200;
/** In characters. */
const LONGEST_TEXT = 20_000;
const LONGEST_CELL = 1000;
const LONGEST_ALT = 500;
const LONGEST_SVG = 300_000;
/** What it may do is bounded where it is shown: an `<img>` runs and fetches nothing. */
const SVG = /<svg\s[^>]*xmlns=["']http:\/\/www\.w3\.org\/2000\/svg["']/;
/** Of all blocks together, in characters. */
const LONGEST = 1_000_000;

class NotShown extends Error {}

/** Blocks as they may be shown, with nothing in them that the contract does not name. */
export function readPresentation(answer: unknown): Read<SubjectBlock[]> {
  try {
    const blocks = listOf(answer, 'blocks', MOST_BLOCKS).map(readBlock);
    const characters = blocks.reduce((sum, block) => sum + sizeOf(block), 0);
    return characters <= LONGEST
      ? { value: blocks }
      : { fault: `gave blocks of ${characters} characters in all; at most ${LONGEST} are taken` };
  } catch (error) {
    if (error instanceof NotShown) return { fault: error.message };
    throw error;
  }
}

function readBlock(answer: unknown, i: number): SubjectBlock {
  const block = (typeof answer === 'object' && answer !== null ? answer : {}) as Record<string, unknown>;
  const at = `block ${i + 1}`;
  switch (block['kind']) {
    case 'text':
      return { kind: 'text', text: textOf(block['text'], `the text of ${at}`, LONGEST_TEXT) };
    case 'table': {
      const columns = listOf(block['columns'], `columns of ${at}`, MOST_COLUMNS).map((column) =>
        textOf(column, `a column of ${at}`, LONGEST_CELL),
      );
      const rows = listOf(block['rows'], `rows of ${at}`, MOST_ROWS).map((row, n) => {
        const cells = listOf(row, `cells of row ${n + 1} of ${at}`, MOST_COLUMNS).map((cell) =>
          typeof cell === 'number' ? cell : textOf(cell, `a cell of ${at}`, LONGEST_CELL),
        );
        if (cells.length === columns.length) return cells;
        throw new NotShown(
          `gave ${cells.length} cells in row ${n + 1} of ${at}, whose table has ${columns.length} columns`,
        );
      });
      return { kind: 'table', columns, rows };
    }
    case 'svg': {
      const alt = textOf(block['alt'], `the alt of ${at}`, LONGEST_ALT);
      if (alt.trim() === '')
        throw new NotShown(`gave no words in the alt of ${at}, for people who cannot see it`);
      const svg = textOf(block['svg'], `the svg of ${at}`, LONGEST_SVG);
      if (!SVG.test(svg)) {
        throw new NotShown(
          `gave a drawing in ${at} that browsers do not show: its element svg lacks xmlns="http://www.w3.org/2000/svg"`,
        );
      }
      return { kind: 'svg', svg, alt };
    }
    default:
      throw new NotShown(`gave ${at} of an unknown kind: the kinds are text, table and svg`);
  }
}

function listOf(answer: unknown, what: string, most: number): unknown[] {
  if (!Array.isArray(answer)) throw new NotShown(`gave ${what} that are no array`);
  if (answer.length > most) throw new NotShown(`gave ${answer.length} ${what}; at most ${most} are taken`);
  return Array.from<unknown>(answer);
}

function textOf(answer: unknown, what: string, longest: number): string {
  if (typeof answer !== 'string') throw new NotShown(`gave no text as ${what}`);
  if (answer.length <= longest) return answer;
  throw new NotShown(`gave ${what} of ${answer.length} characters; at most ${longest} are taken`);
}

function sizeOf(block: SubjectBlock): number {
  if (block.kind === 'text') return block.text.length;
  if (block.kind === 'svg') return block.svg.length;
  return [block.columns, ...block.rows].flat().reduce<number>((sum, cell) => sum + String(cell).length, 0);
}
