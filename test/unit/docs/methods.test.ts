import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { METHOD_KINDS, algorithmSchema } from '../../../core/algorithms/index.ts';
import { ROOT } from '../../support/markdown.ts';

const page = readFileSync(path.join(ROOT, 'docs/methods.md'), 'utf8');

interface Row {
  kind: string;
  cells: string[];
}

/** Cells of the rows that begin with the name of a method, table by table. */
const [firstTable, secondTable] = page
  .split('### Fields of each')
  .map((part) =>
    [...part.matchAll(/^\| \[?`([^`]+)`[^|]*\|(.*)\|$/gm)]
      .map(([, kind, cells]) => ({ kind: kind!, cells: cells!.split('|').map((cell) => cell.trim()) }))
      .filter(({ kind }) => kind !== 'kind'),
  ) as [Row[], Row[]];

const GROUPS: Record<string, string[]> = {
  clip: ['clipRatioLow', 'clipRatioHigh'],
  kl: ['beta'],
  entropy: ['entropyBonus'],
  mean: ['aggregation'],
  passes: ['numIterations', 'minibatch'],
  importance: ['importanceCap', 'importanceRule', 'importanceFloor', 'differenceLow', 'differenceHigh'],
  refills: ['maxRefills'],
};

/** What a cell like "`alpha`; clip, passes" says, field by field. */
const fieldsOf = (cell: string): string[] =>
  cell.split(/[,;] /).flatMap((word) => (word.startsWith('`') ? [word.slice(1, -1)] : GROUPS[word]!));

test('every method has its line in both tables, in the order of the code', () => {
  expect(firstTable.map(({ kind }) => kind)).toEqual(METHOD_KINDS);
  expect(secondTable.map(({ kind }) => kind)).toEqual(METHOD_KINDS);
});

test.each(METHOD_KINDS.map((kind, i) => [kind, i] as const))(
  'the fields of %s are those of the spec',
  (kind, i) => {
    const { shape } = algorithmSchema.options[i]!;
    const [, cell] = secondTable[i]!.cells;
    expect(fieldsOf(cell!).toSorted()).toEqual(
      Object.keys(shape)
        .filter((field) => field !== 'kind')
        .toSorted(),
    );
    expect(kind).toBe(secondTable[i]!.kind);
  },
);

test('the reference has the cases that are named', () => {
  const methodsOf = (file: string): string[] => {
    const text = readFileSync(path.join(ROOT, 'test/reference/methods', file), 'utf8');
    return (JSON.parse(text) as { cases: { method: string }[] }).cases.map(({ method }) => method);
  };
  const [credit, losses] = [methodsOf('credit.json'), methodsOf('losses.json')];
  const namesIn = (part: string): string[] =>
    part.split(', ').filter((name) => !['none', 'stale.json'].includes(name));
  for (const { kind, cells } of secondTable) {
    const [ofCredit, ofLoss] = cells.at(-1)!.split('; ');
    expect(credit, kind).toEqual(expect.arrayContaining(namesIn(ofCredit!)));
    expect(losses, kind).toEqual(expect.arrayContaining(namesIn(ofLoss!)));
  }
});
