import type { Tokenizer } from '../tokenizer/tokenizer.ts';

/** A noncharacter of Unicode, which no text means anything by. */
const MARK = '\ufdd0';

/**
 * Keeps text from forging special tokens on its way through a chat template: each special token that the text spells
 * is broken by a mark, the template is rendered, and the mark is taken out once the real special tokens are known.
 * Text that spells none is tokenized exactly as `transformers` does it.
 */
export class Guard {
  private readonly tokenizer: Tokenizer;
  private readonly special: RegExp;

  constructor(tokenizer: Tokenizer) {
    this.tokenizer = tokenizer;
    const escaped = tokenizer.addedTokens
      .toSorted((a, b) => b.length - a.length)
      .map((token) => token.replace(/[.*+?^${}()|[\]\\/-]/gu, '\\$&'));
    this.special = new RegExp(escaped.length === 0 ? '(?!)' : `(${escaped.join('|')})`, 'u');
  }

  /** The first special token that a text spells. */
  find(text: string): string | undefined {
    return this.special.exec(text)?.[0];
  }

  /** The text with every special token in it broken. */
  shield(text: string): string {
    let shielded = text.replaceAll(MARK, '\ufffd');
    for (let found = this.special.exec(shielded); found; found = this.special.exec(shielded)) {
      const at = found.index + (found[0].codePointAt(0)! > 0xffff ? 2 : 1);
      shielded = shielded.slice(0, at) + MARK + shielded.slice(at);
    }
    return shielded;
  }

  /** Tokens of a rendered text; what was shielded is plain text again. */
  encode(rendered: string): number[] {
    if (!rendered.includes(MARK)) return this.tokenizer.encode(rendered);
    // With a capturing group, `split` keeps what it splits at, in the odd places.
    return rendered
      .split(this.special)
      .flatMap((piece, i) =>
        i % 2 === 1 ? [this.tokenizer.idOf(piece)] : this.tokenizer.encodePlain(piece.replaceAll(MARK, '')),
      );
  }
}
