import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Tokenizer } from '../../../../engine/tokenizer/tokenizer.ts';
import { textsOf } from '../../../../runs/episodes/token-texts.ts';
import { tokenizer as small } from '../../../support/fixture-tokenizer.ts';
import { tokenizerOf } from '../../engine/dialect/fixtures.ts';
import { propertyRuns } from '../../../support/property-runs.ts';

const tokenizers: [name: string, tokenizer: Tokenizer][] = [
  ['gradus', small],
  ['qwen', tokenizerOf('qwen')],
  ['llama', tokenizerOf('llama')],
];
const isToken = (tokenizer: Tokenizer, id: number): boolean => {
  try {
    return tokenizer.decode([id]) !== undefined;
  } catch {
    return false;
  }
};

describe.each(tokenizers)('tokens of %s', (_, tokenizer) => {
  const ids = Array.from({ length: tokenizer.vocabSize }, (__, id) => id).filter((id) =>
    isToken(tokenizer, id),
  );

  test('have the text together that they have as one', () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...ids), { maxLength: 40 }), (some) => {
        expect(textsOf(tokenizer, some).join('')).toBe(tokenizer.decode(some));
      }),
      { numRuns: propertyRuns(300) },
    );
  });

  test('of a text have no half characters', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', maxLength: 40 }), (text) => {
        const some = tokenizer.encode(text);
        expect(textsOf(tokenizer, some).join('')).toBe(tokenizer.decode(some));
      }),
      { numRuns: propertyRuns(300) },
    );
  });

  test('are each as long as it takes, however many end within a character', () => {
    for (const text of ['👩‍👩‍👧 👩‍👩‍👧 👩‍👩‍👧 👩‍👩‍👧', '日本語テキスト']) {
      const some = tokenizer.encode(text);
      const whole = tokenizer.decode(some);
      const texts = textsOf(tokenizer, some);
      // As much as is known after each token, but for what it has begun.
      some.forEach((__, i) => {
        const far = texts.slice(0, i + 1).join('');
        expect(far).toBe(tokenizer.decode(some.slice(0, i + 1)).replace(/\ufffd$/, ''));
      });
      expect(texts.join('')).toBe(whole);
    }
  });
});
