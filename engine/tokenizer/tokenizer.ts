import { Tokenizer as HuggingFaceTokenizer } from '@huggingface/tokenizers';
import { GradusError, messageOf } from '../../core/errors.ts';
import { interruptedAfter } from '../in-time.ts';
import { mayBacktrack } from './steps.ts';
import { tokenizerFile } from './tokenizer-file.ts';
import type { TokenizerFile } from './tokenizer-file.ts';

/** Texts from this length on, in characters or ids, may take long whatever the tokenizer: interrupting costs nothing beside. */
const LONG = 10_000;

/** Text to token ids and back, as a `tokenizer.json` describes it. */
export class Tokenizer {
  /** One more than the largest id. */
  readonly vocabSize: number;
  /** What is a token of its own wherever it stands in a text: special tokens, and others such as `<tool_call>`. */
  readonly addedTokens: readonly string[];
  private readonly whole: HuggingFaceTokenizer;
  private readonly plain: HuggingFaceTokenizer;
  private readonly idsOfAdded: ReadonlyMap<string, number>;
  /** Whether its author's patterns are at work in each direction. */
  private readonly backtracks: { encoding: boolean; decoding: boolean };

  private constructor(json: TokenizerFile) {
    const { added_tokens: listed, model } = json;
    // Matched as it is spelled: text must not become a special token by being normalized.
    const added = listed.map((token) => ({ ...token, normalized: false }));
    const config = {
      clean_up_tokenization_spaces: false,
      // Of a model of whole words the library asks the other file, `tokenizer_config.json`.
      ...(model.type === 'WordLevel' && { unk_token: model.unk_token }),
    };
    // What a post-processor adds is never asked for.
    const parts = { ...json, post_processor: null };
    this.plain = new HuggingFaceTokenizer({ ...parts, added_tokens: [] }, config);
    // Both have the one model, which takes as much memory and time as everything else together. What an id stands for
    // is looked up in `vocab`; what text becomes, in its other parts, which therefore know no added token.
    const light = model.type === 'BPE' ? { ...model, vocab: {}, merges: [] } : model;
    this.whole = new HuggingFaceTokenizer({ ...parts, added_tokens: added, model: light }, config);
    this.whole.model = this.plain.model;
    const { vocab } = this.plain.model!;
    for (const { id, content } of added) vocab[id] = content;
    this.vocabSize = vocab.length;
    this.addedTokens = added.map(({ content }) => content);
    this.idsOfAdded = new Map(added.map(({ id, content }) => [content, id]));
    const { normalizer, pre_tokenizer: preTokenizer, decoder } = json;
    this.backtracks = {
      encoding: mayBacktrack(normalizer) || mayBacktrack(preTokenizer),
      decoding: mayBacktrack(decoder),
    };
  }

  /**
   * From the content of a `tokenizer.json`, as text or parsed. Throws GradusError('policy', 'tokenizer') for what is none
   * that `tokenizerFile` takes.
   */
  static fromJson(content: string | object): Tokenizer {
    try {
      return new Tokenizer(tokenizerFile(typeof content === 'string' ? JSON.parse(content) : content));
    } catch (cause) {
      throw new GradusError(
        'policy',
        'tokenizer',
        `This is not a tokenizer.json that can be used: ${messageOf(cause)}. Take the one saved with the checkpoint.`,
        { cause },
      );
    }
  }

  /**
   * Special tokens in the text become their ids: for text that Gradus itself or an environment's author wrote. Throws
   * GradusError('policy', 'tokenizer') where the tokenizer does not come to an end, as `encodePlain` and `decode` do.
   */
  encode(text: string): number[] {
    return this.encodeWith(this.whole, text);
  }

  /**
   * Every character is just a character: for tool output and whatever else must not be able to forge a special
   * token. Decodes to the same text. Lone surrogates become U+FFFD.
   */
  encodePlain(text: string): number[] {
    return this.encodeWith(this.plain, text);
  }

  /** Bytes that are not UTF-8 become U+FFFD. Throws GradusError('policy', 'token') for an id that does not exist. */
  decode(ids: readonly number[]): string {
    const unknown = ids.find((id) => this.whole.id_to_token(id) === undefined);
    if (unknown !== undefined) {
      throw new GradusError(
        'policy',
        'token',
        `Token ${unknown} is not one of the ${this.vocabSize} tokens; the weights belong to another tokenizer.`,
      );
    }
    if (ids.length === 0) return '';
    const decode = (): string => this.whole.decode([...ids], { skip_special_tokens: false });
    return this.backtracks.decoding || ids.length >= LONG ? ended(decode) : decode();
  }

  private encodeWith(tokenizer: HuggingFaceTokenizer, text: string): number[] {
    if (text === '') return [];
    const encode = (): number[] => tokenizer.encode(text, { add_special_tokens: false }).ids;
    return this.backtracks.encoding || text.length >= LONG ? ended(encode) : encode();
  }

  has(token: string): boolean {
    return this.find(token) !== undefined;
  }

  /** Throws GradusError('policy', 'token') when there is no such token. */
  idOf(token: string): number {
    const id = this.find(token);
    if (id === undefined) {
      throw new GradusError(
        'policy',
        'token',
        `The tokenizer has no token ${JSON.stringify(token)}; train it with this special token or take another one.`,
      );
    }
    return id;
  }

  private find(token: string): number | undefined {
    return this.idsOfAdded.get(token) ?? this.plain.token_to_id(token);
  }
}

/**
 * The patterns of a tokenizer.json are its author's, and JavaScript's engine may backtrack in them for years. Node starts a
 * thread for each call that it may interrupt, and waits for it: what others' patterns must pay, and nobody else.
 */
function ended<T>(work: () => T): T {
  try {
    return interruptedAfter(work);
  } catch (cause) {
    throw new GradusError(
      'policy',
      'tokenizer',
      `The checkpoint's tokenizer cannot read or write a text: ${messageOf(cause)}. Take another tokenizer.json, whose patterns are quick.`,
      { cause },
    );
  }
}
