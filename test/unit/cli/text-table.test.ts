import { describe, expect, test } from 'vitest';
import { textTable } from '../../../runs/text-table.ts';

const HEAD = ['run', 'status', 'spent', 'waits for'];
const ROWS = [
  [
    'calculator',
    'waiting, length-explosion',
    '1234 s, US$ 12.50',
    'the stage has reached a plateau at 81.2 % of held-out tasks',
  ],
  ['web-shop', 'completed', '0 s, US$ 0.00', ''],
];
const widest = (text: string): number => Math.max(...text.split('\n').map((line) => line.length));

describe('a table', () => {
  test.each([40, 60, 80, 120])('is no wider than a terminal of %i columns', (width) => {
    const shown = textTable(HEAD, ROWS, { width, optional: ['spent'] });
    expect(widest(shown.split('\nno room for')[0]!)).toBeLessThanOrEqual(width);
    // All is there, though a cell may be broken.
    expect(shown.replaceAll(/[^a-z%.\d]/gu, '')).toContain('calculator');
    expect(shown).toMatch(/web-shop/u);
  });

  test('breaks lines between words, and leaves a column out before it cuts one', () => {
    const shown = textTable(HEAD, ROWS, { width: 46, optional: ['spent'] });
    for (const word of [
      'calculator',
      'waiting,',
      'length-',
      'explosion',
      'completed',
      'waits for',
      'plateau',
    ]) {
      expect(shown).toContain(word);
    }
    expect(shown).toMatch(/no room for spent/u);
    const keys = textTable(['object'], [[`runs/people/checkpoints/${'0'.repeat(60)}`]], { width: 40 });
    expect(widest(keys)).toBeLessThanOrEqual(40);
    expect(keys).toContain('runs/people/checkpoints/');
  });

  test('says which columns it has left out for lack of room, and leaves none out that it has room for', () => {
    const rows = [Array.from({ length: 12 }, (_, i) => 1_000_000 + i)];
    const head = rows[0]!.map((_, i) => `column ${i}`);
    const narrow = textTable(head, rows, {
      width: 80,
      optional: ['column 3', 'column 9', 'column 1', 'column 2', 'column 4', 'column 5', 'column 6'],
    });
    expect(narrow).toMatch(/no room for column 3, column 9, column 1, column 2, column 4/u);
    expect(narrow).not.toMatch(/│ 1000003/u);
    expect(textTable(head, rows, { width: 200, optional: ['column 3'] })).not.toMatch(/no room/u);
  });

  test('is lines of fields between tabs where no person reads', () => {
    const piped = textTable(
      ['environment', 'tools'],
      [
        ['calculator', 'add\nmultiply'],
        ['a\tb', 3],
      ],
      { width: null },
    );
    expect(piped).toBe('environment\ttools\ncalculator\tadd; multiply\na b\t3');
  });
});
