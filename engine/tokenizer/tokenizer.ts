import { Tokenizer as HuggingFaceTokenizer } from '@huggingface/tokenizers';
import { GradusError, messageOf } from '../../core/errors.ts';

/** Text to token ids and back, as a `tokenizer.json` describes it. */
export class Tokenizer {
  /** One more than the largest id. */
  readonly vocabSize: number;
  /** What is a token of its own wherever it stands in a text: special tokens, and others such as `<tool_call>`. */
  readonly addedTokens: readonly string[];
  private readonly whole: HuggingFaceTokenizer;
  private readonly plain: HuggingFaceTokenizer;

  private constructor(
    whole: HuggingFaceTokenizer,
    plain: HuggingFaceTokenizer,
    addedTokens: readonly string[],
  ) {
    this.whole = whole;
    this.plain = plain;
    this.addedTokens = addedTokens;
    this.vocabSize = Math.max(...whole.get_vocab().values()) + 1;
  }

  /** From the content of a `tokenizer.json`, as text or parsed. Throws GradusError('policy', 'tokenizer'). */
  static fromJson(content: string | object): Tokenizer {
    try {
      const json = typeof content === 'string' ? (JSON.parse(content) as object) : content;
      const config = { clean_up_tokenization_spaces: false };
      return new Tokenizer(
        new HuggingFaceTokenizer(json, config),
        new HuggingFaceTokenizer({ ...json, added_tokens: [] }, config),
        ((json as { added_tokens?: { content: string }[] }).added_tokens ?? []).map(({ content }) => content),
      );
    } catch (cause) {
      throw new GradusError(
        'policy',
        'tokenizer',
        `This is not a tokenizer.json that can be read (${messageOf(cause)}); take the one saved with the checkpoint.`,
        { cause },
      );
    }
  }

  /** Special tokens in the text become their ids: for text that Gradus itself or an environment's author wrote. */
  encode(text: string): number[] {
    return text === '' ? [] : this.whole.encode(text, { add_special_tokens: false }).ids;
  }

  /**
   * Every character is just a character: for tool output and whatever else must not be able to forge a special
   * token. Decodes to the same text. Lone surrogates become U+FFFD.
   */
  encodePlain(text: string): number[] {
    return text === '' ? [] : this.plain.encode(text, { add_special_tokens: false }).ids;
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
    return ids.length === 0 ? '' : this.whole.decode([...ids], { skip_special_tokens: false });
  }

  has(token: string): boolean {
    return this.whole.token_to_id(token) !== undefined;
  }

  /** Throws GradusError('policy', 'token') when there is no such token. */
  idOf(token: string): number {
    const id = this.whole.token_to_id(token);
    if (id === undefined) {
      throw new GradusError(
        'policy',
        'token',
        `The tokenizer has no token ${JSON.stringify(token)}; train it with this special token or take another one.`,
      );
    }
    return id;
  }
}
