/** The part of Hugging Face's `tokenizer.json` that a byte-level BPE tokenizer uses. */
export interface TokenizerJson {
  version: '1.0';
  truncation: null;
  padding: null;
  added_tokens: AddedTokenJson[];
  normalizer: null;
  pre_tokenizer: {
    type: 'Sequence';
    pretokenizers: [
      { type: 'Split'; pattern: { Regex: string }; behavior: 'Isolated'; invert: false },
      { type: 'ByteLevel'; add_prefix_space: false; trim_offsets: true; use_regex: false },
    ];
  };
  post_processor: null;
  decoder: { type: 'ByteLevel'; add_prefix_space: true; trim_offsets: true; use_regex: true };
  model: {
    type: 'BPE';
    dropout: null;
    unk_token: null;
    continuing_subword_prefix: null;
    end_of_word_suffix: null;
    fuse_unk: false;
    byte_fallback: false;
    ignore_merges: false;
    vocab: Record<string, number>;
    merges: [string, string][];
  };
}

interface AddedTokenJson {
  id: number;
  content: string;
  single_word: false;
  lstrip: false;
  rstrip: false;
  normalized: false;
  special: true;
}

/**
 * Where text is cut before merges: digits and arithmetic signs stand alone, so that a number reads the same
 * wherever it is copied to; everything else runs on until white space, with one leading space, and with the line
 * end or the space before a digit that follows. A JSON prefix is one run, and can become one token.
 * Valid for both Oniguruma (Hugging Face) and JavaScript's `u` flag.
 */
export const SPLIT_PATTERN = String.raw`[\p{Nd}+*/()\-]| ?[^\p{Nd}\p{White_Space}+*/()\-]+(?:[\r\n]+| (?=\p{Nd}))?|\p{White_Space}+`;

/** GPT-2's printable stand-in for each byte (Radford et al. 2019, `bytes_to_unicode`). */
export function byteAlphabet(): string[] {
  const printable = (byte: number) =>
    (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
  let next = 256;
  return Array.from({ length: 256 }, (_, byte) => String.fromCharCode(printable(byte) ? byte : next++));
}
