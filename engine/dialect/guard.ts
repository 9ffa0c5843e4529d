import type { Tokenizer } from '../tokenizer/tokenizer.ts';

// Noncharacters of Unicode, which no text means anything by.
const OPEN = '\ufdd0';
const CLOSE = '\ufdd1';
const DIGITS = 0xfde0;
const NONCHARACTERS = /[\ufdd0-\ufdef]/g;
const STAND_IN = /\ufdd0([\ufde0-\ufdef]+)\ufdd1/g;

/**
 * Keeps text from forging special tokens on its way through a chat template: a stand-in of noncharacters takes the place
 * of each special token that the text spells, the template is rendered, and the stand-ins are spelled out again once
 * the real special tokens are known. What stands between special tokens is
 * tokenized as plain text, as `transformers` does it (but for added tokens that swallow the blanks beside them). All of it
 * takes time linear in the text.
 */
export class Guard {
  private readonly tokenizer: Tokenizer;
  /** Longest first, so that of several that begin at one place the longest is found, as in tokenizing. */
  private readonly tokens: readonly string[];
  private readonly numbers: ReadonlyMap<string, number>;
  private readonly special: RegExp;

  constructor(tokenizer: Tokenizer) {
    this.tokenizer = tokenizer;
    this.tokens = [...new Set(tokenizer.addedTokens)]
      // An empty token would be found everywhere; of one with noncharacters `shield` leaves nothing.
      .filter((token) => token !== '' && token.search(NONCHARACTERS) < 0)
      .toSorted((a, b) => b.length - a.length);
    this.numbers = new Map(this.tokens.map((token, i) => [token, i]));
    const escaped = this.tokens.map((token) => token.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&'));
    // Without the flag `u`, as the tokenizer matches: one that is half of a surrogate pair is found in whole ones.
    this.special = new RegExp(escaped.length === 0 ? '(?!)' : `(${escaped.join('|')})`, 'g');
  }

  /** The first special token that a text spells. */
  find(text: string): string | undefined {
    const meant = withoutNoncharacters(text);
    const at = meant.search(this.special);
    return at < 0 ? undefined : this.tokens.find((token) => meant.startsWith(token, at));
  }

  /** The text with a stand-in for every special token in it. */
  shield(text: string): string {
    return withoutNoncharacters(text).replace(this.special, (token) => standIn(this.numbers.get(token)!));
  }

  /** Tokens of a rendered text; what was shielded is plain text again. */
  encode(rendered: string): number[] {
    // With a capturing group, `split` keeps what it splits at, in the odd places.
    return rendered
      .split(this.special)
      .flatMap((piece, i) =>
        i % 2 === 1 ? [this.tokenizer.idOf(piece)] : this.tokenizer.encodePlain(this.spelledOut(piece)),
      );
  }

  private spelledOut(text: string): string {
    const whole = text.replace(STAND_IN, (_, digits: string) => this.tokens[numberOf(digits)] ?? '\ufffd');
    // A template that cuts text may have cut a stand-in.
    return withoutNoncharacters(whole);
  }
}

/** U+FFFD takes their place, and that may be a token itself. */
const withoutNoncharacters = (text: string): string => text.replace(NONCHARACTERS, '\ufffd');

/** Its number in noncharacters, to the base 16. */
function standIn(number: number): string {
  const digits = Array.from(number.toString(16), (digit) =>
    String.fromCharCode(DIGITS + Number.parseInt(digit, 16)),
  );
  return OPEN + digits.join('') + CLOSE;
}

const numberOf = (digits: string): number =>
  Array.from(digits).reduce((sum, digit) => 16 * sum + digit.charCodeAt(0) - DIGITS, 0);
