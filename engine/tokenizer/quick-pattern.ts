import { SplitPreTokenizer } from '@huggingface/tokenizers';

// The regular expressions of a `tokenizer.json` run on every text, and JavaScript's engine backtracks: `(a+)+b` takes
// minutes for forty letters. So a pattern is proved to be quick before it is used. The proof is a rule on its form that
// nearly all of what the families have obeys: nothing has to match after a repetition without end, because then nothing
// can make the engine give back what it took. Trying a branch at a place of the text costs a bounded number of steps, and
// those for the characters that the match then has, so a whole text costs a multiple of its length.
// What the families have besides is in `PROVED`, with the reason why each is as quick.

/** What a part of a pattern can do at one place of a text. */
interface Part {
  /** Most steps that it takes, all ways to match it tried, besides the characters that it keeps. */
  steps: number;
  /** In how many ways it can match at one place, at most. */
  ways: number;
  /** Has a repetition without end. */
  endless: boolean;
  /** Matches everywhere, at least nothing. */
  optional: boolean;
}

/** A text of 100 kB is split in less than a second. The families need some fifty. */
const MOST_STEPS = 2000;
/** DeepSeek LLM lists the letters of three alphabets, with 800. */
const MOST_CHARACTERS = 10_000;

/** Branches that stand one after the other, and are as quick as what obeys the rule. The first that fits is taken. */
const PROVED: readonly string[][] = [
  // White space up to its last line end, else all but its last character, else all. (Llama 3, Qwen, DeepSeek V3.)
  // A run of k without a line end costs the first branch k steps for nothing, but then one of the others takes k − 1.
  String.raw`\s*[\r\n]+|\s+(?!\S)|\s+`,
  String.raw`\s*[\r\n]|\s+(?!\S)|\s+`,
  // Capitals, then small letters; else capitals. (o200k, Tekken.) Where k capitals fail the first branch, after at most
  // 3 k steps, the second one takes them.
  ...["(?i:'s|'t|'re|'ve|'m|'ll|'d)?", ''].map((end) => {
    const [prefix, capital, small] = [
      String.raw`[^\r\n\p{L}\p{N}]?`,
      String.raw`[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]`,
      String.raw`[\p{Ll}\p{Lm}\p{Lo}\p{M}]`,
    ];
    return `${prefix}${capital}*${small}+${end}|${prefix}${capital}+${small}*${end}`;
  }),
  // White space but its last character. (GPT-2.) Giving back one character is enough, or there is but one.
  String.raw`\s+(?!\S)`,
].map((pattern) => branchesOf(sourceOf(pattern)));

/** Patterns that are not quick, and what finds the same and is. */
const QUICKER: ReadonlyMap<string, string> = new Map([
  // DeepSeek LLM. Of a run of white space only its beginning can begin a match, and the rest need not be tried.
  [String.raw`\s+$`, String.raw`(?<!\s)\s+$`],
]);

/**
 * The pattern, or what finds the same quickly. Throws Error, which says what is wrong with it, for one that is not
 * known to take time in proportion to the text, and SyntaxError for what is no pattern.
 */
export function quickPattern(pattern: string): string {
  if (pattern.length > MOST_CHARACTERS) {
    throw new Error(`has ${pattern.length} characters, and may have ${MOST_CHARACTERS}`);
  }
  const quicker = QUICKER.get(pattern);
  if (quicker !== undefined) return quicker;
  const branches = branchesOf(sourceOf(pattern));
  let steps = 0;
  for (let at = 0; at < branches.length;) {
    const proved = PROVED.find((known) => known.every((branch, i) => branch === branches[at + i]));
    if (proved === undefined) steps += new Reader(branches[at]!).alternatives().steps;
    at += proved?.length ?? 1;
  }
  if (steps > MOST_STEPS) throw tooManyWays();
  return pattern;
}

/** As JavaScript reads it: the library rewrites what Oniguruma writes in other words. */
function sourceOf(pattern: string): string {
  const { pattern: compiled } = new SplitPreTokenizer({
    type: 'Split',
    pattern: { Regex: pattern },
    behavior: 'Isolated',
    invert: false,
  });
  return compiled!.source;
}

/** The alternatives of a pattern. */
function branchesOf(source: string): string[] {
  const branches: string[] = [];
  let [start, depth, inClass] = [0, 0, false];
  for (let at = 0; at < source.length; at++) {
    const character = source[at]!;
    if (character === '\\') at++;
    else if (inClass) inClass = character !== ']';
    else if (character === '[') inClass = true;
    else if (character === '(') depth++;
    else if (character === ')') depth--;
    else if (character === '|' && depth === 0) {
      branches.push(source.slice(start, at));
      start = at + 1;
    }
  }
  return [...branches, source.slice(start)];
}

/** Reads a pattern that JavaScript takes with the flag `u`, and adds up what its parts cost. */
class Reader {
  private readonly source: string;
  private at = 0;

  constructor(source: string) {
    this.source = source;
  }

  /** Throws Error where the rule is broken. */
  alternatives(): Part {
    let sum = this.sequence();
    while (this.takes('|')) {
      const next = this.sequence();
      sum = {
        steps: sum.steps + next.steps,
        ways: sum.ways + next.ways,
        endless: sum.endless || next.endless,
        optional: sum.optional || next.optional,
      };
    }
    return sum;
  }

  private sequence(): Part {
    let sum: Part = { steps: 0, ways: 1, endless: false, optional: true };
    while (this.at < this.source.length && !'|)'.includes(this.source[this.at]!)) {
      const from = this.at;
      const next = this.repeated();
      if (sum.endless && !next.optional) {
        throw new Error(
          `may take time that grows much faster than a text: ${this.source.slice(from, this.at)} has to follow a repetition without end`,
        );
      }
      sum = {
        steps: sum.steps + sum.ways * next.steps,
        ways: sum.ways * next.ways,
        endless: sum.endless || next.endless,
        optional: sum.optional && next.optional,
      };
    }
    return sum;
  }

  private repeated(): Part {
    const from = this.at;
    const { part, single } = this.atom();
    const [, star, braces] = this.match(/([*+?])\??|\{([^}]*)\}\??/y) ?? [];
    if (star === undefined && braces === undefined) return part;
    const [least, most] =
      braces === undefined
        ? ({ '*': [0, Infinity], '+': [1, Infinity], '?': [0, 1] }[star!] as [number, number])
        : limits(braces);
    const optional = least === 0 || part.optional;
    if (most === 1) return { ...part, steps: part.steps, ways: part.ways + 1 - least, optional };
    if (most === Infinity && single) return { steps: least + 1, ways: 1, endless: true, optional };
    if (most === Infinity || part.endless) {
      throw new Error(
        `may take time that grows much faster than a text: ${this.source.slice(from, this.at)} repeats more than one character without end`,
      );
    }
    let [steps, ways, power] = [0, 0, 1];
    for (let times = 0; times <= most; times++) {
      if (times >= least) ways += power;
      if (times < most) steps += power * part.steps;
      power *= part.ways;
      if (steps > MOST_STEPS || ways > MOST_STEPS) throw tooManyWays();
    }
    return { steps, ways, endless: false, optional };
  }

  /** `single`: takes one character, whichever. */
  private atom(): { part: Part; single: boolean } {
    const one = { steps: 1, ways: 1, endless: false, optional: false };
    if (this.takes('(')) {
      const looksAround = this.match(/\?<?[=!]/y) !== undefined;
      if (!looksAround && this.match(/\?:|\?<[^>]*>/y) === undefined && this.source[this.at] === '?') {
        throw new Error(`has a group (${this.source.slice(this.at, this.at + 4)}… that is not known here`);
      }
      const part = this.alternatives();
      this.at++;
      if (!looksAround) return { part, single: false };
      if (part.endless) {
        throw new Error('may take time that grows much faster than a text: it looks around without end');
      }
      return { part: { ...one, steps: part.steps + 1 }, single: false };
    }
    if (this.match(/\\(?:[1-9]|k<)/y)) {
      throw new Error('may take time that grows much faster than a text: it refers back to a group');
    }
    const assertion = this.match(/\\[bB]|[\^$]/y) !== undefined;
    if (!assertion)
      this.match(/\[(?:\\.|[^\]\\])*\]|\\[pPux]\{[^}]*\}|\\u[0-9A-Fa-f]{4}|\\x..|\\c.|\\.|./suy);
    return { part: one, single: !assertion };
  }

  private takes(character: string): boolean {
    if (this.source[this.at] !== character) return false;
    this.at++;
    return true;
  }

  private match(sticky: RegExp): RegExpExecArray | undefined {
    sticky.lastIndex = this.at;
    const found = sticky.exec(this.source) ?? undefined;
    this.at += found?.[0].length ?? 0;
    return found;
  }
}

function limits(braces: string): [least: number, most: number] {
  const [least, most = least] = braces.split(',');
  return [Number(least), most === '' ? Infinity : Number(most)];
}

const tooManyWays = (): Error =>
  new Error(`can match in so many ways that it takes more than ${MOST_STEPS} steps a character`);
