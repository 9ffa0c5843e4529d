import * as fc from 'fast-check';
import { SplitPreTokenizer } from '@huggingface/tokenizers';
import { describe, expect, test } from 'vitest';
import { quickPattern } from '../../../../engine/tokenizer/quick-pattern.ts';
import { SPLIT_PATTERN } from '../../../../engine/tokenizer/tokenizer-json.ts';

const capitals = String.raw`[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]`;
const small = String.raw`[\p{Ll}\p{Lm}\p{Lo}\p{M}]`;
const contraction = String.raw`(?i:'s|'t|'re|'ve|'m|'ll|'d)`;
const space = String.raw`\s*[\r\n]+|\s+(?!\S)|\s+`;

/** As the families' files have them. */
const FAMILIES: Record<string, string> = {
  Gradus: SPLIT_PATTERN,
  'GPT-2': String.raw`'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`,
  'Llama 3': String.raw`${contraction}|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|${space}`,
  'Qwen2, Qwen2.5, Qwen3': String.raw`${contraction}|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|${space}`,
  'Qwen3.5': String.raw`${contraction}|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|${space}`,
  o200k: String.raw`[^\r\n\p{L}\p{N}]?${capitals}*${small}+${contraction}?|[^\r\n\p{L}\p{N}]?${capitals}+${small}*${contraction}?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|${space}`,
  Tekken: String.raw`[^\r\n\p{L}\p{N}]?${capitals}*${small}+|[^\r\n\p{L}\p{N}]?${capitals}+${small}*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|${space}`,
  'DeepSeek V3': `[!"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_\`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*|${space}`,
  'DeepSeek V3, digits': String.raw`\p{N}{1,3}`,
  'DeepSeek V3, Chinese and Japanese': '[一-龥぀-ゟ゠-ヿ]+',
  'DeepSeek Coder': String.raw`\s?\p{L}+`,
  'DeepSeek LLM, line ends': '[\r\n]',
  'DeepSeek LLM, signs': String.raw`\s?[!-/:-~！-／：-～‘-‟　-。]+`,
  'DeepSeek LLM, white space': String.raw`\s+$`,
  Falcon: '[0-9][0-9][0-9]',
  BLOOM: String.raw` ?[^(\s|[.,!?…。，、।۔،])]+`,
  'Ling, with possessive signs': String.raw`'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+`,
};

const compiled = (pattern: string): RegExp =>
  new SplitPreTokenizer({ type: 'Split', pattern: { Regex: pattern }, behavior: 'Isolated', invert: false })
    .pattern!;

const LENGTH = 100_000;
/** Runs that make engines back up: of one kind, of two in turn, and with what a run must not end in. */
const worstTexts = (units: readonly string[], ends: readonly string[]): string[] =>
  units.flatMap((unit) => ends.map((end) => unit.repeat(LENGTH / unit.length) + end));
/** Processor time, milliseconds, for a hundred thousand characters. What is quadratic takes five thousand at least. */
const LIMIT = 1500;

function milliseconds(pattern: string, text: string): number {
  const before = process.cpuUsage();
  // As the library splits.
  for (const _ of text.matchAll(compiled(quickPattern(pattern))));
  return process.cpuUsage(before).user / 1000;
}

describe('the patterns of the families', () => {
  test.each(Object.entries(FAMILIES))(
    '%s: is accepted, and takes no long time for any text',
    (_, pattern) => {
      const units = [
        ' ',
        '\n',
        ' \n',
        'A',
        'a',
        'Aa',
        'ǅ',
        '́',
        '一',
        '7',
        '.',
        "'",
        ' .',
        'ªA',
        '  一',
        '\t',
      ];
      for (const text of worstTexts(units, ['', 'x', '一', '\n', ' ', '\ud800'])) {
        expect(milliseconds(pattern, text), JSON.stringify(text.slice(-5))).toBeLessThan(LIMIT);
      }
    },
  );

  test('what stands for the trailing white space of DeepSeek LLM finds the same', () => {
    const quick = compiled(quickPattern(String.raw`\s+$`));
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom(' ', '\t', '\n', '\r', 'x'), maxLength: 30 }), (text) => {
        const slow = compiled(String.raw`\s+$`);
        const found = (regex: RegExp) =>
          Array.from(text.matchAll(regex), ({ index, 0: run }) => [index, run]);
        expect(found(quick)).toEqual(found(slow));
      }),
      { numRuns: 2000 },
    );
  });
});

describe('any other pattern', () => {
  test.each([
    ['(a+)+b', 'repeats more than one character without end'],
    ['(a|a)*b', 'repeats more than one character without end'],
    ['(?:.*)*x', 'repeats more than one character without end'],
    ['(?:a+){2}', 'repeats more than one character without end'],
    ['a*a*a*b', 'b has to follow a repetition without end'],
    ['x|a+b', 'b has to follow a repetition without end'],
    [String.raw`(?:\s+(?!\S))b`, 'has to follow a repetition without end'],
    [String.raw`\s*[\r\n]+`, 'has to follow a repetition without end'],
    [String.raw`\s*[\r\n]+|\s+`, 'has to follow a repetition without end'],
    [String.raw`\d{1,3}(?=(?:\d{3})*\b)`, 'repeats more than one character without end'],
    ['a(?=b+)', 'looks around without end'],
    [String.raw`(a)\1`, 'refers back'],
    ['a?'.repeat(30) + 'a'.repeat(30), 'in so many ways'],
    ['(?:a{1,30}){1,30}b', 'in so many ways'],
    ['a{1000000}', 'in so many ways'],
    ['(', 'Invalid regular expression'],
  ])('%s is refused', (pattern, reason) => {
    expect(() => quickPattern(pattern)).toThrow(reason);
  });

  test.each([
    ' {2,}',
    '^x|x$',
    String.raw`\bfoo\b`,
    String.raw`[\p{L}&&[^a]]`,
    'a{2,5}b?',
    '(?<!a)b',
    '\u{1F980}+',
  ])('%s is accepted', (pattern) => {
    expect(quickPattern(pattern)).toBe(pattern);
  });

  test('of more characters than a pattern needs is refused', () => {
    expect(() => quickPattern('a'.repeat(20_000))).toThrow('has 20000 characters');
  });

  test('is accepted only if no text takes it long', () => {
    const letter = fc.constantFrom('a', 'b', '[ab]', '.', '[^a]');
    const { pattern } = fc.letrec<{ pattern: string; sequence: string; part: string }>((tie) => ({
      pattern: fc.array(tie('sequence'), { minLength: 1, maxLength: 3 }).map((list) => list.join('|')),
      sequence: fc.array(tie('part'), { minLength: 1, maxLength: 3 }).map((list) => list.join('')),
      part: fc
        .tuple(
          fc.oneof(
            { depthSize: 'small', withCrossShrink: true },
            letter,
            tie('pattern').map((inner) => `(?:${inner})`),
            tie('pattern').map((inner) => `(?=${inner})`),
            tie('pattern').map((inner) => `(?!${inner})`),
          ),
          fc.constantFrom('', '', '?', '*', '+', '{1,3}', '{2,}', '+?'),
        )
        .map(([one, times]) => (one.startsWith('(?=') || one.startsWith('(?!') ? one : one + times)),
    }));
    let accepted = 0;
    fc.assert(
      fc.property(pattern, (one) => {
        try {
          quickPattern(one);
        } catch {
          return;
        }
        accepted++;
        for (const text of worstTexts(['a', 'ab', 'b'], ['', 'c', '\n'])) {
          expect(milliseconds(one, text), one).toBeLessThan(LIMIT);
        }
      }),
      { numRuns: 3000, seed: 1 },
    );
    expect(accepted).toBeGreaterThan(50);
  }, 60_000);
});
