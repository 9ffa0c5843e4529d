import { expect, test } from 'vitest';
import { calculatorEnvironment } from '../../../../../environments/families/calculator/environment.ts';
import {
  evaluateExpression,
  parseExpression,
} from '../../../../../environments/families/calculator/expression.ts';
import type { Operation } from '../../../../../environments/families/calculator/expression.ts';
import { calculatorHintedEnvironment } from '../../../../../environments/families/calculator/hinted.ts';

const plain = calculatorEnvironment();
const hinted = calculatorHintedEnvironment();

test('the tasks are the calculator’s with a hint behind them, and the expert does the same', () => {
  for (const level of hinted.levels)
    for (let index = 0; index < 40; index++) {
      const at = { split: 'train', level, index } as const;
      const [with_, without] = [hinted, plain].map((of) => of.task({ ...at, environment: of.name }));
      expect(with_!.prompt.startsWith(`${without!.prompt}\n\n`)).toBe(true);
      expect(with_!.answer).toBe(without!.answer);
      expect(hinted.demonstrate(with_!, index).turns).toEqual(plain.demonstrate(without!, index).turns);
      expect(with_).toEqual(hinted.task({ ...at, environment: hinted.name }));
    }
});

test('the hints are of every sort that the calculator has itself, true of the task, and without a digit', () => {
  const sorts = new Map<string, number>();
  for (let index = 0; index < 400; index++) {
    const task = hinted.task({ environment: hinted.name, split: 'train', level: 2, index });
    const hint = task.prompt.split('\n\n').at(-1)!;
    expect(hint).not.toMatch(/\d/u);
    const operations = task.calls!.map(({ arguments: of }) => (of as { expression: string }).expression);
    const named = /^The (first|second) operation (?:was left out: it )?is an? (\w+)/u.exec(hint);
    if (named) {
      const operation = operations[named[1] === 'first' ? 0 : 1]!;
      const signs = { addition: '+', subtraction: '-', multiplication: '*', division: '/' };
      // The sign stands behind the first number, which may be negative.
      expect(operation.slice(1)).toContain(signs[named[2] as keyof typeof signs]);
    }
    const sort = hint.replace(/first|second|an? (?:addition|subtraction|multiplication|division)/gu, '…');
    sorts.set(sort, (sorts.get(sort) ?? 0) + 1);
  }
  expect([...sorts.keys()].toSorted()).toEqual([
    'Each operation was right: the answer is the result of the last one, and nothing else.',
    'More was computed than was asked for.',
    'Nothing was computed: each operation is a call of the calculator.',
    'The … operation is …, and not ….',
    'The … operation is …, as was done, but of other numbers.',
    'The … operation was left out: it is ….',
  ]);
  expect(Math.min(...sorts.values())).toBeGreaterThan(15);
});

test('a hint tells of an attempt that can be made: what the calculator refuses has its error for a hint', () => {
  for (const level of hinted.levels)
    for (let index = 0; index < 600; index++) {
      const task = hinted.task({ environment: hinted.name, split: 'train', level, index });
      const place = /The (\w+) operation is an? \w+, and not a division\./u.exec(task.prompt)?.[1];
      if (place === undefined) continue;
      const call = task.calls![['first', 'second', 'third', 'fourth', 'fifth', 'sixth'].indexOf(place)]!;
      const due = parseExpression((call.arguments as { expression: string }).expression) as Operation;
      expect(() => evaluateExpression({ ...due, operator: '/' }), task.prompt).not.toThrow();
    }
});
