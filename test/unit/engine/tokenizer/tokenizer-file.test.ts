import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { GradusError } from '../../../../core/errors.ts';
import { mayBacktrack } from '../../../../engine/tokenizer/steps.ts';
import type { TokenizerStep } from '../../../../engine/tokenizer/steps.ts';
import { SPLIT_PATTERN } from '../../../../engine/tokenizer/tokenizer-json.ts';
import { Tokenizer } from '../../../../engine/tokenizer/tokenizer.ts';

type Fields = Record<string, unknown>;

const whole = JSON.parse(
  readFileSync(new URL('../../../fixtures/tokenizer/tokenizer.json', import.meta.url), 'utf8'),
) as Fields & { model: Fields };
const bpe = { type: 'BPE', vocab: { a: 0, b: 1, ab: 2 }, merges: [['a', 'b']] };
const unigram = {
  type: 'Unigram',
  vocab: [
    ['<unk>', 0],
    ['a', -1],
  ],
  unk_id: 0,
};
const wordLevel = { type: 'WordLevel', vocab: { '<unk>': 0, a: 1, b: 2 }, unk_token: '<unk>' };
const open = (changes: Fields) => Tokenizer.fromJson({ ...whole, added_tokens: [], ...changes });
const split = (pattern: NonNullable<TokenizerStep['pattern']>): TokenizerStep => ({
  type: 'Split',
  pattern,
  behavior: 'Isolated',
  invert: false,
});
const replace = (pattern: NonNullable<TokenizerStep['pattern']>, content: string): TokenizerStep => ({
  type: 'Replace',
  pattern,
  content,
});

describe('the tables of a tokenizer.json', () => {
  test('whole ones are read', () => {
    expect(open({ model: bpe, pre_tokenizer: null }).encode('abba')).toEqual([2, 1, 0]);
    expect(
      open({ model: { ...bpe, merges: ['a b'], type: undefined }, pre_tokenizer: null }).encode('ab'),
    ).toEqual([2]);
    expect(open({ model: unigram, pre_tokenizer: null, decoder: null }).encode('a?')).toEqual([1, 0]);
    const words = open({ model: wordLevel, pre_tokenizer: { type: 'WhitespaceSplit' }, decoder: null });
    expect(words.encode('b nobody a')).toEqual([2, 0, 1]);
  });

  test.each<[string, Fields, string]>([
    ['a model of no known type', { model: { ...bpe, type: 'Nope' } }, 'model.type is "Nope"'],
    ['no model', { model: null }, 'it has no model'],
    [
      'a merge of a token that is not there',
      { model: { ...bpe, merges: [['a', 'c']] } },
      'model.merges[0] names "c"',
    ],
    ['the same, as text', { model: { ...bpe, merges: ['a b', 'c a'] } }, 'model.merges[1] names "c"'],
    [
      'a merge into a token that is not there',
      { model: { ...bpe, merges: [['b', 'a']] } },
      'model.merges[0] names "ba"',
    ],
    ['a merge of three', { model: { ...bpe, merges: ['a b c'] } }, 'model.merges[0] is no pair'],
    ['merges of two kinds', { model: { ...bpe, merges: [['a', 'b'], 'a b'] } }, 'model.merges[1] is no pair'],
    ['a merge of numbers', { model: { ...bpe, merges: [[0, 1]] } }, 'model.merges[0] names 0'],
    ['no merges', { model: { ...bpe, merges: undefined } }, 'model.merges is no list'],
    [
      'one id for two tokens',
      { model: { ...bpe, vocab: { a: 0, b: 0, ab: 1 } } },
      'two tokens have the id 0',
    ],
    [
      'whole words, and nothing for others',
      { model: { ...wordLevel, unk_token: undefined } },
      'other text would have no ids',
    ],
    [
      'an unknown token that is not there',
      { model: { ...bpe, unk_token: '<unk>' } },
      'model.unk_token is "<unk>"',
    ],
    [
      'subwords with a prefix',
      { model: { ...bpe, continuing_subword_prefix: '##' } },
      'is "##", which is not supported',
    ],
    ['an unk_id that is no piece', { model: { ...unigram, unk_id: 2 } }, 'model.unk_id is 2'],
    ['no unk_id', { model: { ...unigram, unk_id: null } }, 'model.unk_id is null'],
    [
      'a piece without its score',
      { model: { ...unigram, vocab: [['a', 0], ['b']] } },
      'model.vocab[1] is no piece',
    ],
    ['a piece that is no text', { model: { ...unigram, vocab: [[7, 0]] } }, 'model.vocab[0] is no piece'],
    [
      'a piece that is a page',
      { model: { ...unigram, vocab: [['a'.repeat(200), 0]] } },
      'model.vocab[0] is no piece',
    ],
    [
      'an added token without text',
      { model: bpe, added_tokens: [{ id: 3, content: 7 }] },
      'added_tokens[0] has no content',
    ],
    ['an added token that is none', { model: bpe, added_tokens: [null] }, 'added_tokens[0] has no content'],
    [
      'an added token with the id of plain text',
      { model: bpe, added_tokens: [{ id: 0, content: '<s>' }] },
      'the id 0 is that of the added token "<s>" and of "a"',
    ],
  ])('%s: is refused when it is opened', (_, changes, reason) => {
    expect(() => open(changes)).toThrow(reason);
    expect(() => open(changes)).toThrow(GradusError);
  });
});

describe('the steps of a tokenizer.json', () => {
  test.each<[string, Fields, string]>([
    ['all that came before', { normalizer: replace({ String: 'a' }, '$`') }, 'dollar sign'],
    [
      'a step that is none',
      { normalizer: { type: 'Sequence', normalizers: [7] } },
      'normalizer.normalizers[0] is no object',
    ],
    [
      'a list that is none',
      { normalizer: { type: 'Sequence', normalizers: {} } },
      'normalizer.normalizers is no list',
    ],
  ])('%s: is refused when it is opened', (_, changes, reason) => {
    expect(() => open(changes)).toThrow(reason);
    expect(() => open(changes)).toThrow(GradusError);
  });

  test('a pattern that backtracks without end ends in an error', () => {
    const slow = open({ pre_tokenizer: split({ Regex: '(a+)+b' }) });
    expect(() => slow.encodePlain('a'.repeat(60))).toThrow(
      /tokenizer cannot read or write a text: it takes longer/u,
    );
  });

  test.each<[string, Fields]>([
    [
      'a step in a list',
      { normalizer: { type: 'Sequence', normalizers: [replace({ Regex: '(a+)+b' }, 'c')] } },
    ],
    ['a normalizer', { normalizer: replace({ Regex: '(a+)+b' }, 'c') }],
  ])('so it does in %s', (_, changes) => {
    expect(() => open(changes).encode('a'.repeat(60))).toThrow(/it takes longer/u);
  });

  test('and in a decoder', () => {
    const decoders = [{ type: 'Fuse' }, replace({ Regex: '(a+)+b' }, 'c')];
    const slow = open({ model: bpe, pre_tokenizer: null, decoder: { type: 'Sequence', decoders } });
    const long = Array.from({ length: 60 }, () => 0);
    expect(() => slow.decode(long)).toThrow(/it takes longer/u);
  });

  test('only what has a pattern of its author may backtrack', () => {
    expect(mayBacktrack(null)).toBe(false);
    expect(mayBacktrack(replace({ String: '(a+)+b' }, 'c'))).toBe(false);
    expect(mayBacktrack(split({ Regex: SPLIT_PATTERN }))).toBe(false);
    expect(mayBacktrack(split({ Regex: String.raw`\s` }))).toBe(true);
    expect(mayBacktrack({ type: 'Sequence', pretokenizers: [split({ Regex: 'a' })] })).toBe(true);
  });

  test('the trailing white space of DeepSeek LLM is found at once, however long it is', () => {
    const deepSeek = open({
      model: { ...bpe, unk_token: 'a' },
      pre_tokenizer: split({ Regex: String.raw`\s+$` }),
    });
    expect(deepSeek.encodePlain(`a${' '.repeat(1_000_000)}b`).at(-1)).toBe(1);
  });

  test('what Llama 2 has is accepted', () => {
    const llama2 = open({
      model: { ...bpe, vocab: { ...bpe.vocab, '▁': 3 }, unk_token: 'a' },
      normalizer: {
        type: 'Sequence',
        normalizers: [{ type: 'Prepend', prepend: '▁' }, replace({ String: ' ' }, '▁')],
      },
      pre_tokenizer: null,
      decoder: {
        type: 'Sequence',
        decoders: [
          replace({ String: '▁' }, ' '),
          { type: 'ByteFallback' },
          { type: 'Fuse' },
          { type: 'Strip', content: ' ', start: 1, stop: 0 },
        ],
      },
    });
    expect(llama2.encode('ab ab')).toEqual([3, 2, 3, 2]);
    expect(llama2.decode([3, 2, 3, 2])).toBe('ab ab');
  });
});
