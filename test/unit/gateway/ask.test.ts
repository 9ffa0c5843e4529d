import { expect, test } from 'vitest';
import { argumentsOf } from '../../../gateway/ask.ts';
import { Problem } from '../../../gateway/problem.ts';

const nested = (depth: number): string => `${'['.repeat(depth)}${']'.repeat(depth)}`;

test('arguments are JSON, or the text that they are', () => {
  expect(argumentsOf('{"a": [1, null]}')).toEqual({ a: [1, null] });
  expect(argumentsOf('{"a"')).toBe('{"a"');
  expect(JSON.stringify(argumentsOf(nested(400)))).toBe(nested(400));
});

test('arguments that no recursion comes to the end of are the fault of who sent them, not of the worker', () => {
  for (const depth of [1000, 100_000]) {
    expect(() => argumentsOf(nested(depth))).toThrow(Problem);
    expect(() => argumentsOf(nested(depth))).toThrow('more than 500 lists or objects within each other');
  }
});
