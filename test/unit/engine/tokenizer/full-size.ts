import { byteAlphabet } from '../../../../engine/tokenizer/tokenizer-json.ts';
import { tokenizerJsonOf } from '../dialect/fixtures.ts';
import type { Family } from '../dialect/fixtures.ts';

/** A tokenizer of the real size of a family that the README names. */
export const FULL_SIZES = {
  'qwen2.5': {
    base: 'qwen',
    /** Tokens without the added ones, and rows of the embedding. */
    plain: 151_643,
    rows: 151_936,
    special: [
      '<|endoftext|>',
      '<|im_start|>',
      '<|im_end|>',
      ...['object_ref', 'box', 'quad', 'vision'].flatMap((name) => [`<|${name}_start|>`, `<|${name}_end|>`]),
      '<|vision_pad|>',
      '<|image_pad|>',
      '<|video_pad|>',
      '<tool_call>',
      '</tool_call>',
      ...['fim_prefix', 'fim_middle', 'fim_suffix', 'fim_pad', 'repo_name', 'file_sep'].map(
        (name) => `<|${name}|>`,
      ),
    ],
  },
  qwen3: {
    base: 'qwen',
    plain: 151_643,
    rows: 151_936,
    get special(): string[] {
      const more = ['<tool_response>', '</tool_response>', '<think>', '</think>'];
      return [...FULL_SIZES['qwen2.5'].special, ...more];
    },
  },
  'llama3.1': {
    base: 'llama',
    plain: 128_000,
    rows: 128_256,
    special: llamaSpecial(),
  },
} as const satisfies Record<
  string,
  { base: Family; plain: number; rows: number; special: readonly string[] }
>;

export type FullSize = keyof typeof FULL_SIZES;
export const fullSizes = Object.keys(FULL_SIZES) as FullSize[];

/** All 256, in the order of their ids. */
function llamaSpecial(): string[] {
  let reserved = 0;
  const named = new Map([
    [0, 'begin_of_text'],
    [1, 'end_of_text'],
    [4, 'finetune_right_pad_id'],
    [6, 'start_header_id'],
    [7, 'end_header_id'],
    [8, 'eom_id'],
    [9, 'eot_id'],
    [10, 'python_tag'],
  ]);
  return Array.from(
    { length: 256 },
    (_, i) => `<|${named.get(i) ?? `reserved_special_token_${reserved++}`}|>`,
  );
}

interface Json {
  added_tokens: { id: number; content: string; special: boolean; [key: string]: unknown }[];
  model: { vocab: Record<string, number>; merges: [string, string][] };
}

/**
 * `tokenizer.json`, to the byte as the Python library saves it (test/parity/tokenizers/make_fixtures.py, which makes the
 * same by the same rule): the small fixture of the family, whose merges were learnt, with merges of random pairs of
 * its tokens until it has the family's size, and the family's added tokens.
 */
export function fullSizeJson(name: FullSize): string {
  const { base, plain, special } = FULL_SIZES[name];
  const json = JSON.parse(tokenizerJsonOf(base)) as Json;
  const vocab = Object.entries(json.model.vocab)
    .toSorted(([, a], [, b]) => a - b)
    .map(([token]) => token);
  const added = json.added_tokens[0]!;
  extend(vocab, json.model.merges, plain);
  json.added_tokens = special.map((content, i) => ({
    ...added,
    id: plain + i,
    content,
    special: content.startsWith('<|'),
  }));
  // An object would have the digits first, whose names are whole numbers.
  const [before, after] = JSON.stringify({ ...json, model: { ...json.model, vocab: '@' } }).split('"@"');
  return `${before}{${vocab.map((token, id) => `${JSON.stringify(token)}:${id}`).join(',')}}${after}`;
}

const LONGEST = 10;

function extend(vocab: string[], merges: [string, string][], size: number): void {
  let state = 1;
  const draw = (below: number): number => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state * below) / 2 ** 32);
  };
  const known = new Set(vocab);
  const alphabet = byteAlphabet();
  const high = alphabet.slice(0x80);
  const lefts = vocab.filter((token) => /^Ġ?[A-Za-z]+$/u.test(token));
  const rights = vocab.filter((token) => /^[A-Za-z]+$/u.test(token));
  while (known.size < size) {
    // Pieces of UTF-8 now and then; short tokens, which come first, more often than long ones.
    const letters = draw(8) > 0;
    const [left, right] = [letters ? lefts : high, letters ? rights : high].map(
      (pool) => pool[draw(1 + draw(pool.length))]!,
    ) as [string, string];
    const token = left + right;
    if (token.length > LONGEST || known.has(token)) continue;
    vocab.push(token);
    known.add(token);
    merges.push([left, right]);
    if (!letters) high.push(token);
    else {
      lefts.push(token);
      if (!token.startsWith('Ġ')) rights.push(token);
    }
  }
}
