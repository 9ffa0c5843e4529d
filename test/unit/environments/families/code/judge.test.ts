import { describe, expect, test } from 'vitest';
import { programIn } from '../../../../../environments/families/code/judge.ts';

describe('the program of an answer', () => {
  test.each([
    ['x => x + 1', 'x => x + 1'],
    ['So:\n```js\nx => x + 1\n```\n', 'x => x + 1\n'],
    ['First:\n```\nx => 1\n```\nand then:\n```js\nx => x + 1\n```', 'x => x + 1\n'],
    // What is marked behind it is no block.
    ['```js\nx => x + 1\n```\nIt is ```x``` with one more.', 'x => x + 1\n'],
    ['```js\nx => x + 1\n```\n\n```', 'x => x + 1\n'],
  ])('is its last block, or all of it: %j', (answer, program) => {
    expect(programIn(answer)).toBe(program);
  });
});
