import { SPLIT_PATTERN } from './tokenizer-json.ts';

/** A normalizer, pre-tokenizer or decoder of a `tokenizer.json`. */
export interface TokenizerStep {
  type?: string;
  normalizers?: (TokenizerStep | null)[];
  pretokenizers?: (TokenizerStep | null)[];
  decoders?: (TokenizerStep | null)[];
  pattern?: { Regex?: string; String?: string };
  content?: string;
  [option: string]: unknown;
}

/** Patterns that take the square of a text, and what finds the same in its length. */
const QUICKER: ReadonlyMap<string, string> = new Map([
  // DeepSeek LLM. Of a run of white space only its beginning can begin a match, and the rest need not be tried.
  [String.raw`\s+$`, String.raw`(?<!\s)\s+$`],
]);

/**
 * The same normalizer, pre-tokenizer or decoder as JavaScript does what it says; `where` is its field. Throws Error that
 * says which step JavaScript would take otherwise. What a `type` is, is the library's to say.
 */
export function readableSteps(where: string, step: TokenizerStep | null): TokenizerStep | null {
  if (step === null) return null;
  if (typeof step !== 'object' || Array.isArray(step)) throw new Error(`${where} is no object`);
  // JavaScript takes `$&` for what was found, and "$`" for all before it.
  if (step.type === 'Replace' && String(step.content).includes('$')) {
    throw new Error(`${where}.content has a dollar sign, which means something else here`);
  }
  const copy = { ...step };
  for (const list of ['normalizers', 'pretokenizers', 'decoders'] as const) {
    const inner = step[list];
    if (inner === undefined) continue;
    if (!Array.isArray(inner)) throw new Error(`${where}.${list} is no list`);
    copy[list] = inner.map((next, i) => readableSteps(`${where}.${list}[${i}]`, next));
  }
  const quicker = QUICKER.get(step.pattern?.Regex ?? '');
  if (quicker !== undefined) copy.pattern = { Regex: quicker };
  return copy;
}

/** Whether JavaScript may backtrack in a step's patterns for years. In the one that Gradus gives its own tokenizers it does not. */
export function mayBacktrack(step: TokenizerStep | null): boolean {
  if (step === null) return false;
  const pattern = step.pattern?.Regex;
  if (pattern !== undefined && pattern !== SPLIT_PATTERN) return true;
  return [step.normalizers, step.pretokenizers, step.decoders].some((list) => list?.some(mayBacktrack));
}
