import { messageOf } from '../../core/errors.ts';
import { quickPattern } from './quick-pattern.ts';

/** A normalizer, pre-tokenizer or decoder of a `tokenizer.json`. */
export interface Step {
  type?: string;
  normalizers?: (Step | null)[];
  pretokenizers?: (Step | null)[];
  decoders?: (Step | null)[];
  pattern?: { Regex?: string; String?: string };
  content?: string;
  [option: string]: unknown;
}

/** Llama 2 has four, DeepSeek LLM seven. */
const MOST_STEPS = 64;
/** All steps together: NFC and a byte-level pre-tokenizer come to 9, what was SentencePiece to 72. */
const MOST_GROWTH = 256;

/** How many times longer a text can become, for what is not as long as it was (UAX #15, table 7; UTF-8). */
const GROWTH: Readonly<Record<string, number>> = {
  NFC: 3,
  NFD: 4,
  NFKC: 18,
  NFKD: 18,
  Precompiled: 18,
  BertNormalizer: 12,
  Lowercase: 3,
  ByteLevel: 3,
};

/**
 * The same normalizer, pre-tokenizer or decoder with patterns that are quick (`quickPattern`), of which the three fields
 * of a tokenizer take `where` as their name. Throws Error that says which step is wrong: one whose pattern may take for
 * ever, or steps that can make a text many times longer. What a `type` is, is the library's to say.
 */
export function boundedSteps(where: string, step: Step | null): Step | null {
  let [steps, growth] = [0, 1];
  const bounded = (at: string, one: Step | null): Step | null => {
    if (one === null) return null;
    if (typeof one !== 'object' || Array.isArray(one)) throw new Error(`${at} is no object`);
    if (++steps > MOST_STEPS) throw new Error(`${where} has more than ${MOST_STEPS} steps`);
    growth *= growthOf(at, one);
    if (growth > MOST_GROWTH) {
      throw new Error(`${where} can make a text more than ${MOST_GROWTH} times longer, with ${at}`);
    }
    const copy = { ...one };
    for (const list of ['normalizers', 'pretokenizers', 'decoders'] as const) {
      const inner = one[list];
      if (inner !== undefined) {
        if (!Array.isArray(inner)) throw new Error(`${at}.${list} is no list`);
        copy[list] = inner.map((next, i) => bounded(`${at}.${list}[${i}]`, next));
      }
    }
    if ('pattern' in one || TAKES_PATTERN.has(one.type ?? '')) copy.pattern = boundedPattern(at, one.pattern);
    return copy;
  };
  return bounded(where, step);
}

const TAKES_PATTERN: ReadonlySet<string> = new Set(['Split', 'Replace']);

function boundedPattern(at: string, pattern: Step['pattern']): { Regex: string } | { String: string } {
  const { Regex: regex, String: literal } = pattern ?? {};
  if (typeof literal === 'string' && regex === undefined) return { String: literal };
  if (typeof regex !== 'string' || literal !== undefined) {
    throw new Error(`${at}.pattern is neither {"String": …} nor {"Regex": …}`);
  }
  try {
    return { Regex: quickPattern(regex) };
  } catch (cause) {
    throw new Error(
      `the pattern ${JSON.stringify(shortened(regex))} of ${at} ${messageOf(cause)} (those of GPT-2, Llama, Qwen and DeepSeek are known to be quick)`,
      { cause },
    );
  }
}

function growthOf(at: string, { type, pattern, content, length, ...step }: Step): number {
  if (type === 'FixedLength' && !(Number.isInteger(length) && (length as number) > 0)) {
    throw new Error(`${at}.length is no number of characters`);
  }
  if (type === 'Replace') {
    if (content !== undefined && typeof content !== 'string') throw new Error(`${at}.content is no text`);
    // JavaScript takes `$&` for what was found, and "$`" for all before it.
    if (content?.includes('$'))
      throw new Error(`${at}.content has a dollar sign, which means something else here`);
    const replaced = content?.length ?? 0;
    const found = pattern?.String?.length ?? 0;
    return found > 0 ? Math.max(1, replaced / found) : 1 + replaced;
  }
  if (type === 'Prepend' || type === 'Metaspace') {
    const added = [step['prepend'], step['replacement'], step['str_rep']].map((text) => text ?? '');
    if (!added.every((text) => typeof text === 'string')) throw new Error(`${at} adds what is no text`);
    return 1 + Math.max(0, ...added.map((text) => text.length));
  }
  return GROWTH[type ?? ''] ?? 1;
}

const shortened = (text: string): string => (text.length > 80 ? `${text.slice(0, 80)}…` : text);
