import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { dialectLines } from '../../../../cli/commands/import.ts';
import { dialectsSpoken } from '../../../../engine/dialect/dialects-spoken.ts';
import { Tokenizer } from '../../../../engine/tokenizer/tokenizer.ts';
import { configOf, tokenizerOf } from './fixtures.ts';

const spoken = (...of: Parameters<typeof dialectsSpoken>): string[] =>
  dialectsSpoken(...of).all.flatMap(({ name, missing }) => (missing === null ? [name] : []));

test('a model of the family of Qwen speaks hermes by itself, and can be trained to speak those that are plain text', () => {
  const of = [tokenizerOf('qwen'), configOf('qwen', 'qwen2.5-like')] as const;
  expect(spoken(...of)).toEqual(['hermes', 'search-r1', 'retool']);
  expect(dialectLines(dialectsSpoken(...of))).toEqual([
    'it speaks hermes where the spec names no other dialect',
    'it can be trained to speak search-r1, retool: {"model": {"from": …, "dialect": {"name": "search-r1"}}}',
    expect.stringMatching(/^not gradus: its tokenizer has no /),
    'not llama3: its chat template knows no role ipython',
    'not pythonic: its chat template knows no role ipython',
    'not mistral: its chat template writes no [TOOL_CALLS]',
    'not deepseek: its chat template writes no <｜tool▁call▁begin｜>',
  ]);
});

test('a model of the family of Llama speaks llama3 by itself', () => {
  const dialects = dialectsSpoken(tokenizerOf('llama'), configOf('llama', 'llama3.1-like'));
  expect(dialects.byItself).toBe('llama3');
  expect(dialects.all.find(({ name }) => name === 'hermes')?.missing).toBe(
    'its chat template writes no <tool_call>',
  );
});

test('a model without a chat template says what it lacks for each, and that the spec has to choose', () => {
  const file = path.resolve('test/fixtures/models/qwen2/tokenizer.json');
  const tokenizer = Tokenizer.fromJson(readFileSync(file, 'utf8'));
  const [first, ...others] = dialectLines(dialectsSpoken(tokenizer, {}));
  expect(first).toBe('its files do not say which dialect it speaks: name one in the spec');
  expect(others.join('\n')).toContain(
    'not hermes: hermes needs a chat template, and the checkpoint has none',
  );
});
