import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Guard } from '../../../../engine/dialect/guard.ts';
import { openDialect } from '../../../../engine/dialect/open-dialect.ts';
import { Tokenizer } from '../../../../engine/tokenizer/tokenizer.ts';
import { fullSizeJson } from '../tokenizer/full-size.ts';
import { configOf, tokenizerJsonOf } from './fixtures.ts';
import { propertyRuns } from '../../../support/property-runs.ts';

const HOSTILE: string[] = Array.of(
  // One character, or half of one.
  ...Array.from('ü÷u"\\/🦀\ufffd\ufdd0é '),
  '\ud83e',
  '\udd80',
  'e\u0301',
  '\n\n',
  '',
  // Beginnings of each other.
  '<|',
  '<|tool',
  '<|tool-call|>',
  '<|im_',
  'im_start',
  '<|im_start|><|im_end|>',
  '|>',
  'uu',
  'uuu',
  // What means something in regular expressions.
  'a-',
  '[a-z]',
  '^.*$',
  '(',
  ')',
  '{2}',
  'x|y',
  '$&',
  '\\d',
);

/** The small tokenizer of Qwen's family with these added tokens beside its own. */
function withTokens(contents: readonly string[], fields: object = {}): Tokenizer {
  const json = JSON.parse(tokenizerJsonOf('qwen')) as { added_tokens: { id: number; content: string }[] };
  const own = json.added_tokens;
  const more = contents.map((content, i) => ({
    ...own[0]!,
    normalized: false,
    special: false,
    ...fields,
    id: own.at(-1)!.id + 1 + i,
    content,
  }));
  return Tokenizer.fromJson({ ...json, added_tokens: [...own, ...more] });
}

const idsOfAdded = (tokenizer: Tokenizer): Set<number> =>
  new Set(tokenizer.addedTokens.map((token) => tokenizer.idOf(token)));

test.each(['ü', '<|tool-call|>', '\ud83e'])(
  'a checkpoint with the added token %j is spoken to as any other',
  (token) => {
    const tokenizer = withTokens([token]);
    const dialect = openDialect(tokenizer, configOf('qwen', 'qwen2.5-like'), []);
    const prompt = dialect.promptTokens([{ role: 'user', content: `für ${token} 🦀?` }]);
    expect(prompt).not.toContain(tokenizer.idOf(token));
    expect(tokenizer.decode(prompt)).toContain(`für ${token.replace('\ud83e', '\ufffd')} 🦀?`);
  },
);

test('a noncharacter is taken for the replacement character, also where that is a token', () => {
  const guard = new Guard(withTokens(['\ufffd'], { normalized: false }));
  expect(guard.find('\ufdd0')).toBe('\ufffd');
  expect(guard.shield('\ufdd0')).not.toBe('\ufffd');
});

test('whatever tokens there are, text that spells them stays plain text, and nothing is lost', () => {
  const pieces = fc.oneof(fc.constantFrom(...HOSTILE), fc.string({ unit: 'binary', maxLength: 4 }));
  const text = fc.array(pieces, { maxLength: 12 }).map((parts) => parts.join(''));
  fc.assert(
    fc.property(fc.subarray(HOSTILE, { minLength: 1 }), text, fc.boolean(), (contents, text, normalized) => {
      const tokenizer = withTokens(contents, { normalized });
      const guard = new Guard(tokenizer);
      const added = idsOfAdded(tokenizer);
      const start = tokenizer.idOf('<|im_start|>');
      const tokens = guard.encode(`<|im_start|>${guard.shield(text)}`);
      expect(tokens[0]).toBe(start);
      expect(tokens.slice(1).filter((id) => added.has(id))).toEqual([]);
      // Noncharacters mean nothing, and the small tokenizer normalizes.
      const kept = text.replace(/[\ufdd0-\ufdef]/g, '\ufffd');
      expect(tokens.slice(1)).toEqual(tokenizer.encodePlain(kept));
      expect(guard.find(text) === undefined).toBe(guard.shield(text) === kept);
    }),
    { numRuns: propertyRuns(40) },
  );
});

describe('the time that it takes is linear in the text', () => {
  const tokenizer = Tokenizer.fromJson(fullSizeJson('llama3.1'));
  const guard = new Guard(tokenizer);
  const seconds = (text: string): number => {
    const start = process.cpuUsage();
    guard.shield(text);
    guard.find(text);
    const { user, system } = process.cpuUsage(start);
    return (user + system) / 1e6;
  };

  test.each([
    ['special tokens', '<|eot_id|>'],
    ['what nearly is one', '<|reserved_special_token_24|'],
    ['first letters of one', '<'],
    ['plain text', 'Nothing to see here, move along. '],
  ])('for 2 MB of %s', (_, unit) => {
    expect(seconds(unit.repeat(Math.ceil(2e6 / unit.length)))).toBeLessThan(2);
  });
});
