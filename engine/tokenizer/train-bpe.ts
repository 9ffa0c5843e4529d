import { GradusError } from '../../core/errors.ts';
import { atOnce } from '../in-pieces.ts';
import type { InPieces } from '../in-pieces.ts';
import { byteAlphabet, SPLIT_PATTERN, type TokenizerJson } from './tokenizer-json.ts';

/** A distinct run of text: its current symbols and how often the corpus has it. */
interface Word {
  symbols: string[];
  count: number;
}

/**
 * Byte-level BPE (Sennrich et al. 2016; bytes as in GPT-2): merges the most frequent pair until the vocabulary has
 * `vocabSize` tokens, the 256 bytes and the special tokens included, or no pair occurs twice. Equal counts go to
 * the pair that sorts first, so the same corpus gives the same tokenizer.
 * Ids: bytes, merges in order, special tokens last.
 * Throws GradusError('policy', 'tokenizer') when `vocabSize` leaves no room for bytes and special tokens.
 */
export const trainTokenizer = (
  corpus: Iterable<string>,
  vocabSize: number,
  specialTokens: readonly string[],
): TokenizerJson => atOnce(trainTokenizerInPieces(corpus, vocabSize, specialTokens));

/** The same, with a break after every text of the corpus and every few thousand words of a search for a pair. */
export function* trainTokenizerInPieces(
  corpus: Iterable<string>,
  vocabSize: number,
  specialTokens: readonly string[],
): InPieces<TokenizerJson> {
  const alphabet = byteAlphabet();
  const room = vocabSize - alphabet.length - specialTokens.length;
  if (room < 0) {
    throw new GradusError(
      'policy',
      'tokenizer',
      `A vocabulary of ${vocabSize} cannot hold 256 bytes and ${specialTokens.length} special tokens; ask for at least ${vocabSize - room}.`,
    );
  }
  const words = yield* countWords(corpus, alphabet, specialTokens);
  // Plain text must never encode to a special token, so no merge may spell one.
  const taken = new Set([...alphabet, ...specialTokens]);
  const merges: [string, string][] = [];
  while (merges.length < room) {
    const pair = yield* mostFrequentPair(words, taken);
    if (pair === undefined) break;
    merges.push(pair);
    taken.add(pair[0] + pair[1]);
    for (const [i, word] of words.entries()) {
      if (i % PIECE === 0) yield;
      merge(word, pair);
    }
  }
  return tokenizerJson(alphabet, merges, specialTokens);
}

/** Words between two breaks: a millisecond or two. */
const PIECE = 4096;

function* countWords(
  corpus: Iterable<string>,
  alphabet: readonly string[],
  specialTokens: readonly string[],
): InPieces<Word[]> {
  const split = new RegExp(SPLIT_PATTERN, 'gu');
  const special = new RegExp(
    specialTokens.map((token) => token.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')).join('|') || '(?!)',
    'u',
  );
  const counts = new Map<string, number>();
  for (const text of corpus) {
    yield;
    for (const piece of text.split(special)) {
      for (const [run] of piece.matchAll(split)) counts.set(run, (counts.get(run) ?? 0) + 1);
    }
  }
  const encoder = new TextEncoder();
  return [...counts]
    .map(([run, count]) => ({ symbols: Array.from(encoder.encode(run), (byte) => alphabet[byte]!), count }))
    .filter((word) => word.symbols.length > 1);
}

function* mostFrequentPair(
  words: readonly Word[],
  taken: ReadonlySet<string>,
): InPieces<[string, string] | undefined> {
  // No symbol contains a space (byte 0x20 is written Ġ), so a space can join a pair into a key.
  const counts = new Map<string, number>();
  for (const [at, { symbols, count }] of words.entries()) {
    if (at % PIECE === 0) yield;
    for (let i = 0; i + 1 < symbols.length; i++) {
      const key = `${symbols[i]} ${symbols[i + 1]}`;
      counts.set(key, (counts.get(key) ?? 0) + count);
    }
  }
  let best: string | undefined;
  let bestCount = 1;
  for (const [key, count] of counts) {
    if (count < bestCount || count < 2 || (count === bestCount && best !== undefined && key > best)) continue;
    if (taken.has(key.replace(' ', ''))) continue;
    best = key;
    bestCount = count;
  }
  return best?.split(' ') as [string, string] | undefined;
}

function merge(word: Word, [left, right]: readonly [string, string]): void {
  const { symbols } = word;
  let out = 0;
  for (let i = 0; i < symbols.length; i++) {
    if (symbols[i] === left && symbols[i + 1] === right) {
      symbols[out++] = left + right;
      i++;
    } else {
      symbols[out++] = symbols[i]!;
    }
  }
  symbols.length = out;
}

function tokenizerJson(
  alphabet: readonly string[],
  merges: [string, string][],
  specialTokens: readonly string[],
): TokenizerJson {
  const tokens = [...alphabet, ...merges.map(([left, right]) => left + right)];
  return {
    version: '1.0',
    truncation: null,
    padding: null,
    added_tokens: specialTokens.map((content, i) => ({
      id: tokens.length + i,
      content,
      single_word: false,
      lstrip: false,
      rstrip: false,
      normalized: false,
      special: true,
    })),
    normalizer: null,
    pre_tokenizer: {
      type: 'Sequence',
      pretokenizers: [
        { type: 'Split', pattern: { Regex: SPLIT_PATTERN }, behavior: 'Isolated', invert: false },
        { type: 'ByteLevel', add_prefix_space: false, trim_offsets: true, use_regex: false },
      ],
    },
    post_processor: null,
    decoder: { type: 'ByteLevel', add_prefix_space: true, trim_offsets: true, use_regex: true },
    model: {
      type: 'BPE',
      dropout: null,
      unk_token: null,
      continuing_subword_prefix: null,
      end_of_word_suffix: null,
      fuse_unk: false,
      byte_fallback: false,
      ignore_merges: false,
      vocab: Object.fromEntries(tokens.map((token, id) => [token, id])),
      merges,
    },
  };
}
