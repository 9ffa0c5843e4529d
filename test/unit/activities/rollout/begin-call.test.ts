import { expect, test } from 'vitest';
import { beginCall } from '../../../../activities/rollout/begin-call.ts';
import { randomKey } from '../../../../core/random.ts';
import type { TokenizerConfig } from '../../../../engine/dialect/checkpoint-dialect.ts';
import { openDialect } from '../../../../engine/dialect/open-dialect.ts';
import { Tokenizer } from '../../../../engine/tokenizer/tokenizer.ts';
import { configOf, tokenizerJsonOf } from '../../engine/dialect/fixtures.ts';
import { dialect, tokenizer } from '../test-environment.ts';

const tools = ['search', 'open', 'close'].map((name) => ({ name }));
const drawn = (probability: number, i: number) =>
  tokenizer.decode(beginCall({ dialect, tokenizer }, tools, probability, randomKey('test', i)));

test('tools are drawn as often as was said, each as likely, and the same again for the same key', () => {
  const texts = Array.from({ length: 3000 }, (_, i) => drawn(0.3, i));
  const shares = tools.map(
    ({ name }) => texts.filter((text) => text === `<tool_call>{"name":"${name}"`).length / texts.length,
  );
  for (const share of shares) expect(Math.abs(share - 0.1)).toBeLessThan(0.02);
  expect(texts.filter((text) => text === '').length / texts.length).toBeCloseTo(0.7, 1);
  expect(texts.slice(0, 50)).toEqual(Array.from({ length: 50 }, (_, i) => drawn(0.3, i)));
});

test('never, always, and where there is nothing to draw', () => {
  expect(drawn(0, 1)).toBe('');
  expect(drawn(1, 1)).not.toBe('');
  expect(beginCall({ dialect, tokenizer }, [], 1, randomKey('test'))).toEqual([]);
});

test.each(['name', 'arguments', 'tool_call', 'x'])('a tool may be called %s', (name) => {
  const begun = tokenizer.decode(beginCall({ dialect, tokenizer }, [{ name }], 1, randomKey('test')));
  expect(begun).toBe(`<tool_call>{"name":${JSON.stringify(name)}`);
});

test('in a dialect of chat templates, and not in one whose calls have no name', () => {
  const qwen = Tokenizer.fromJson(tokenizerJsonOf('qwen'));
  const properties = { query: { type: 'string' } };
  const described = { name: 'search', description: '', parameters: { type: 'object', properties } };
  const begun = (config: TokenizerConfig) =>
    qwen.decode(
      beginCall(
        { dialect: openDialect(qwen, config, [described]), tokenizer: qwen },
        [{ name: 'search' }],
        1,
        randomKey('test'),
      ),
    );
  const qwen3 = configOf('qwen', 'qwen3-like');
  expect(begun(qwen3)).toBe('<tool_call>\n{"name": "search"');
  expect(begun({ ...qwen3, gradus_dialect: { name: 'search-r1' } })).toBe('');
});
