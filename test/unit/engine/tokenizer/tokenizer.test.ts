import { readFileSync } from 'node:fs';
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { SPECIAL_TOKENS } from '../../../../engine/dialect/gradus/special-tokens.ts';
import { Tokenizer } from '../../../../engine/tokenizer/tokenizer.ts';
import { trainTokenizer } from '../../../../engine/tokenizer/train-bpe.ts';
import { propertyRuns } from '../../../support/property-runs.ts';

const fixture = (name: string) =>
  readFileSync(new URL(`../../../fixtures/tokenizer/${name}`, import.meta.url), 'utf8');
const tokenizer = Tokenizer.fromJson(fixture('tokenizer.json'));
const special = new Set(SPECIAL_TOKENS.map((token) => tokenizer.idOf(token)));

/** Any text, with special tokens and pieces of them among it. */
const anyText = fc
  .array(
    fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.string({ unit: 'grapheme' }),
      fc.constantFrom(...SPECIAL_TOKENS, '<', '</', '|>', '🦀', '\u0000', '\r\n', '\ufeff', ' 12'),
    ),
    { maxLength: 8 },
  )
  .map((parts) => parts.join(''));

describe('a tokenizer from tokenizer.json', () => {
  test('encodes as the Python library does', () => {
    const { cases } = JSON.parse(fixture('python-encodings.json')) as {
      cases: { text: string; ids: number[] }[];
    };
    for (const { text, ids } of cases) expect(tokenizer.encode(text), text).toEqual(ids);
  });

  test('decodes to the text that was encoded, whatever it is', () => {
    fc.assert(
      fc.property(anyText, (text) => {
        expect(tokenizer.decode(tokenizer.encode(text))).toBe(text);
        expect(tokenizer.decode(tokenizer.encodePlain(text))).toBe(text);
      }),
      { numRuns: propertyRuns(500) },
    );
  });

  test('never makes a special token of plain text', () => {
    fc.assert(
      fc.property(anyText, (text) => {
        expect(tokenizer.encodePlain(text).filter((id) => special.has(id))).toEqual([]);
      }),
      { numRuns: propertyRuns(500) },
    );
    expect(tokenizer.encode('</tool_response><|im_end|>')).toHaveLength(2);
    expect(tokenizer.encodePlain('</tool_response><|im_end|>').length).toBeGreaterThan(2);
  });

  test('keeps digits and signs apart, so that a number is the same tokens everywhere', () => {
    const digits = Array.from('120', (digit) => tokenizer.idOf(digit));
    expect(tokenizer.encode('120')).toEqual(digits);
    expect(tokenizer.encode('x 120-7').slice(-5, -2)).toEqual(digits);
    expect(tokenizer.encode('{"name":"calculator","arguments":{"expression":"120').slice(-3)).toEqual(digits);
  });

  test('an id or a token that does not exist is an error that says so', () => {
    expect(() => tokenizer.decode([1, tokenizer.vocabSize])).toThrow(
      `Token ${tokenizer.vocabSize} is not one of`,
    );
    expect(() => tokenizer.idOf('<|nope|>')).toThrow('no token "<|nope|>"');
    expect(() => Tokenizer.fromJson('{}')).toThrow('not a tokenizer.json');
    expect(() => Tokenizer.fromJson('half a file {')).toThrow('not a tokenizer.json');
  });

  test.each([-1, 1.5, 2 ** 53, 1e9, '7', null, '__proto__'])(
    'an id that is %s is none, and never reaches a decoder',
    (id) => {
      const file = (added: unknown, vocab: object) => ({
        ...(JSON.parse(fixture('tokenizer.json')) as object),
        added_tokens: [{ id: added, content: '<odd>', special: true }],
        model: { type: 'BPE', vocab, merges: [] },
      });
      expect(Tokenizer.fromJson(file(2, { a: 0, b: 1 })).vocabSize).toBe(3);
      expect(() => Tokenizer.fromJson(file(id, { a: 0, b: 1 }))).toThrow('a token has the id');
      expect(() => Tokenizer.fromJson(file(2, { a: 0, b: id }))).toThrow('a token has the id');
    },
  );

  test('empty text is no tokens', () => {
    expect(tokenizer.encode('')).toEqual([]);
    expect(tokenizer.encodePlain('')).toEqual([]);
    expect(tokenizer.decode([])).toBe('');
  });
});

describe('training', () => {
  const corpus = Array.from({ length: 50 }, (_, i) => `<think>see ${i}</think>the cat has the hat`);

  test('gives the same tokenizer for the same corpus', () => {
    expect(JSON.stringify(trainTokenizer(corpus, 300, SPECIAL_TOKENS))).toBe(
      JSON.stringify(trainTokenizer([...corpus], 300, SPECIAL_TOKENS)),
    );
  });

  test('fills the vocabulary up to its size and no further', () => {
    expect(Tokenizer.fromJson(trainTokenizer(corpus, 270, SPECIAL_TOKENS)).vocabSize).toBe(270);
    const trained = Tokenizer.fromJson(trainTokenizer(corpus, 10_000, SPECIAL_TOKENS));
    expect(trained.vocabSize).toBeLessThan(350);
    expect(trained.encode(' cat')).toHaveLength(1);
  });

  test('never merges plain text into what a special token spells', () => {
    const forging = Array.from({ length: 100 }, () => '<think>a</think>');
    const trained = Tokenizer.fromJson(trainTokenizer(forging, 400, ['a', 'b']));
    expect(trained.encodePlain('<think>')).toHaveLength(1);
    const guarded = Tokenizer.fromJson(trainTokenizer(['x <thi', 'nk> <thi', '<th <thi'], 400, ['<th']));
    expect(guarded.encodePlain('<th').length).toBeGreaterThan(1);
    expect(guarded.encode('<th')).toHaveLength(1);
  });

  test('refuses a vocabulary without room for the bytes', () => {
    expect(() => trainTokenizer(corpus, 260, SPECIAL_TOKENS)).toThrow('ask for at least 267');
  });
});
