import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  evaluateExpression,
  parseExpression,
  printExpression,
  steps,
  type Expression,
} from '../../../../../environments/families/calculator/expression.ts';

const { expression } = fc.letrec<{ expression: Expression; operation: Expression }>((tie) => ({
  expression: fc.oneof({ depthSize: 'small' }, fc.bigInt(-999n, 999n), tie('operation')),
  operation: fc.record({
    operator: fc.constantFrom('+' as const, '-' as const, '*' as const),
    left: tie('expression'),
    right: tie('expression'),
  }),
}));

describe('expressions', () => {
  test('what is printed is read back as the same tree', () => {
    fc.assert(
      fc.property(expression, (tree) => {
        const text = printExpression(tree);
        fc.pre(text.length <= 100);
        expect(parseExpression(text)).toEqual(tree);
      }),
    );
  });

  test('doing the steps one by one gives the value of the whole', () => {
    fc.assert(
      fc.property(expression, (tree) => {
        let value: bigint;
        try {
          value = evaluateExpression(tree);
        } catch {
          return;
        }
        const all = steps(tree);
        expect(all.length === 0 ? tree : all.at(-1)!.result).toBe(value);
        for (const step of all) expect(evaluateExpression(step.remaining)).toBe(value);
      }),
    );
  });

  test('steps go from left to right, and times before plus', () => {
    const calls = (text: string) =>
      steps(parseExpression(text)).map(({ operation }) => printExpression(operation));
    expect(calls('12+7*3')).toEqual(['7*3', '12+21']);
    expect(calls('20-5-3')).toEqual(['20-5', '15-3']);
    expect(calls('3*4+(10-4)/2')).toEqual(['3*4', '10-4', '6/2', '12+3']);
    expect(calls('3-(4-9)')).toEqual(['4-9', '3--5']);
  });
});
