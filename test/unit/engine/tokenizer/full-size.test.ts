import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { Tokenizer } from '../../../../engine/tokenizer/tokenizer.ts';
import { fullSizeJson, fullSizes } from './full-size.ts';

/** Written by test/parity/tokenizers/make_fixtures.py with the real library. */
const expected = JSON.parse(
  readFileSync(new URL('../../../fixtures/tokenizer/full-size.json', import.meta.url), 'utf8'),
) as Record<string, { sha256: string; tokens: number; cases: { text: string; ids: number[] }[] }>;

describe.each(fullSizes)('a tokenizer of the real size of %s', (name) => {
  const json = fullSizeJson(name);
  const { sha256, tokens, cases } = expected[name]!;

  test('is the file that the Python library saves, to the byte', () => {
    expect(createHash('sha256').update(json).digest('hex')).toBe(sha256);
  });

  test('is read whole, and encodes and decodes as the Python library does', () => {
    const tokenizer = Tokenizer.fromJson(json);
    expect(tokenizer.vocabSize).toBe(tokens);
    for (const { text, ids } of cases) {
      expect(tokenizer.encode(text), text).toEqual(ids);
      expect(tokenizer.decode(ids), text).toBe(name === 'llama3.1' ? text : text.normalize());
    }
    for (const token of tokenizer.addedTokens) expect(tokenizer.encodePlain(token).length).toBeGreaterThan(1);
  });
});
